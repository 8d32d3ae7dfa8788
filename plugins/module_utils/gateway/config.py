# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's configuration as text. Private to the collection.

For HAProxy of Debian 12 and 13: 2.6 and 3.0. The files that the configuration names lie in its directory. Unusual
settings come from measurements: docs/gateway.md gives the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.addresses import in_url
from ..engine import adapters
from ..engine.adapters.contract import TRANSCRIBE
from . import affinity, deaths, errors
from .backends import Backend, Fleet, Replica
from .errors import ApiError
from .keys import ANONYMOUS, NO_LIMIT
from .names import (
    CERTIFICATE,
    CONTROL_SOCKET,
    DEATHS_LUA,
    DEATHS_PATH,
    HEADER,
    KEEP_ALIVE_SECONDS,
    LOCAL_PATH,
    LOCAL_SOCKET,
    MARKS_MAP,
    PEERS_SOCKET,
    SET,
    SETS_PATH,
    SEVERAL_MAP,
    STATE_DIRECTORY,
    STATE_FILE,
    WEIGHT,
    WRONG_TASKS_MAP,
    asking_name,
)
from .settings import MODELS_PATH, Settings

LOCAL = "@local"
"""The name of the client on the local socket. No key may have this name."""

MIB = 1 << 20

BUFFER_ROOM = 64 << 10
"""Bytes of a buffer in addition to the body: headers, and the room for rewriting (tune.maxrewrite)."""

MAX_REWRITE = 16 << 10

CONNECT_SECONDS = 2
REQUEST_SECONDS = 60
"""Time in which a header, and then a body, must arrive: 8 MiB in 60 s are 1.1 Mb/s."""

STOP_MARGIN_SECONDS = 60

VALID_ID = "^[A-Za-z0-9._-]{1,64}$"
"""What a client's request id may have. Another id is replaced: the log and the view of deaths show ids."""

SHOWN = 200
"""How many characters of a client's text reach a log or a message."""


def render(settings: Settings, fleet: Fleet) -> str:
    """The text of haproxy.cfg."""
    sections = [
        _global(settings, fleet),
        _peers(),
        _defaults(settings),
        _api(settings, fleet),
        _limits_table(),
        _metrics(settings, fleet),
        *(_backend(backend, settings) for backend in fleet.backends),
    ]
    return "\n\n".join([HEADER, *("\n".join(section) for section in sections)]) + "\n"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [title, *(f"    {line}" for line in lines)]


def limit_mib(settings: Settings, fleet: Fleet) -> int:
    """The limit of a request with audio, in MiB. Until an engine transcribes, it is the limit of other requests.

    Each request has a buffer for the greater of the two limits.
    """
    # Read from each engine: the tasks of a whole set are unknown while the tasks of one engine are unknown.
    replicas = [replica for backend in fleet.backends for replica in backend.replicas]
    transcribes = any(TRANSCRIBE in replica.tasks for replica in replicas)
    return settings.audio_mib if transcribes else settings.body_mib


def _global(settings: Settings, fleet: Fleet) -> list[str]:
    longest = settings.generation_seconds + settings.hold_seconds + settings.queue_seconds + STOP_MARGIN_SECONDS
    return _section(
        "global",
        [
            "default-path config",
            "log /dev/log len 8192 local0 info",
            "chroot /var/lib/haproxy",
            "user haproxy",
            "group haproxy",
            f"stats socket {CONTROL_SOCKET} mode 600 level admin expose-fd listeners",
            "stats timeout 30s",
            "localpeer gateway",
            f"maxconn {settings.max_connections}",
            f"tune.bufsize {max(settings.body_mib, limit_mib(settings, fleet)) * MIB + BUFFER_ROOM}",
            f"tune.maxrewrite {MAX_REWRITE}",
            # Enough for a request with the longest wait and the longest silence. A stream that lasts longer is cut.
            f"hard-stop-after {longest}s",
            f"server-state-base {STATE_DIRECTORY}",
            f"server-state-file {STATE_FILE}",
            "lua-load gateway.lua",
            f"lua-load {DEATHS_LUA}",
            "ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets",
        ],
    )


def _defaults(settings: Settings) -> list[str]:
    retry = "conn-failure empty-response 500" if settings.retry_sent else "conn-failure"
    return _section(
        "defaults",
        [
            "mode http",
            "log global",
            "option dontlognull",
            # When a client closes the connection, its request ends.
            "option abortonclose",
            # After a reload, the old process answers a request on an idle connection before it closes the connection.
            "option idle-close-on-response",
            # An engine closes idle connections after 5 s. HAProxy keeps none, so none closes while a request uses it.
            "option http-server-close",
            "http-reuse never",
            "option http-no-delay",
            "option redispatch 1",
            "retries 3",
            f"retry-on {retry}",
            "load-server-state-from-file global",
            f"timeout connect {CONNECT_SECONDS}s",
            f"timeout client {settings.generation_seconds}s",
            f"timeout server {settings.generation_seconds}s",
            f"timeout queue {settings.queue_seconds}s",
            f"timeout http-request {REQUEST_SECONDS}s",
            f"timeout http-keep-alive {KEEP_ALIVE_SECONDS}s",
            "timeout check 5s",
            *(f"http-error {error.directive()}" for error in errors.BUILT_IN),
        ],
    )


def _bind(address: str, port: int) -> str:
    return f":::{port} v4v6" if address == "::" else f"{in_url(address)}:{port}"


def _return(error: ApiError, condition: str) -> str:
    return f"http-request return {error.directive()} {condition}"


def _api(settings: Settings, fleet: Fleet) -> list[str]:
    tls = f" ssl crt {CERTIFICATE} alpn h2,http/1.1" if settings.tls else ""
    return _section(
        "frontend api",
        [
            f"bind {_bind(settings.bind_address, settings.port)}{tls} id 1",
            f"bind unix@{LOCAL_SOCKET} mode 600 id 2",
            f"log-format {errors.quoted(LOG_FORMAT)}",
            "acl local so_id 2",
            "acl api path -m str " + " ".join(settings.paths),
            f"acl models path -m str {MODELS_PATH}",
            "acl audio path -m str " + " ".join(adapters.get().paths[TRANSCRIBE]),
            "acl form req.hdr(Content-Type) -m beg -i multipart/form-data",
            *_identity(),
            *([_return(errors.FOREIGN_CLIENT, "unless local or { src -f clients.acl }")] if settings.clients else []),
            _return(errors.NO_PATH, f"unless api or models or local {{ path -m str {LOCAL_PATH} }}"),
            _return(errors.wrong_method("GET"), "if models !{ method GET }"),
            _return(errors.wrong_method("POST"), "unless models or { method POST }"),
            *_key(settings),
            # From a file, since a line of HAProxy's configuration has a limited length.
            "http-request return status 200 content-type application/json file models.json if models",
            *deaths.refusal(settings),
            *_limits(),
            *_body(settings, fleet),
            *_route(),
            "use_backend %[var(txn.backend)]",
        ],
    )


def _identity() -> list[str]:
    """The request's id, from the client if it sent a valid one, and the path as the log shows it."""
    return [
        f"http-request set-var(txn.id) req.fhdr(X-Request-ID) if {{ req.fhdr(X-Request-ID) -m reg {VALID_ID} }}",
        "http-request set-var(txn.id) uuid() unless { var(txn.id) -m found }",
        "http-request set-header X-Request-ID %[var(txn.id)]",
        "http-after-response set-header X-Request-ID %[var(txn.id)] if { var(txn.id) -m found }",
        "http-after-response del-header Server",
        f"http-request set-var(txn.path) path,bytes(0,{SHOWN})",
        *deaths.REMEMBERED,
    ]


def _key(settings: Settings) -> list[str]:
    return [
        f"http-request set-var(txn.key) str({LOCAL}) if local",
        "http-request set-var(txn.key) http_auth_bearer,sha2(256),hex,lower,map(keys.map) unless local",
        f"http-request set-var(txn.key) str({ANONYMOUS}) unless {{ var(txn.key) -m found }}"
        if settings.anonymous
        else _return(errors.NO_KEY, "unless { var(txn.key) -m found }"),
    ]


def _limits() -> list[str]:
    return [
        f"http-request set-var(txn.rate) var(txn.key),map_str_int(rates.map,{NO_LIMIT})",
        f"http-request set-var(txn.concurrency) var(txn.key),map_str_int(concurrency.map,{NO_LIMIT})",
        "http-request track-sc0 var(txn.key) table limits",
        _return(errors.TOO_MANY_AT_ONCE, "if { sc0_conn_cur,sub(txn.concurrency) gt 0 }"),
        _return(errors.TOO_MANY, "if { sc0_gpc0_rate,sub(txn.rate) ge 0 }"),
        # Only admitted requests count: otherwise a client that retries without pause would never be admitted again.
        "http-request sc-inc-gpc0(0)",
    ]


def _peers() -> list[str]:
    """The process that replaces this one at a reload: it gets the counts of this process."""
    return _section("peers gateways", [f"peer gateway abns@{PEERS_SOCKET}"])


def _limits_table() -> list[str]:
    return _section(
        "backend limits",
        ["stick-table type string len 64 size 100k expire 10m peers gateways store gpc0,gpc0_rate(60s),conn_cur"],
    )


def _body(settings: Settings, fleet: Fleet) -> list[str]:
    """These rules come after keys and limits, so that a refused client fills no buffer."""
    services = [
        f"http-request use-service lua.too_large if !audio {{ req.body_size gt {settings.body_mib * MIB} }}",
        "http-request use-service lua.audio_too_large"
        f" if audio {{ req.body_size gt {limit_mib(settings, fleet) * MIB} }}",
    ]
    return [*services, f"http-request wait-for-body time {REQUEST_SECONDS}s", *services]


UNKNOWN_MODEL = ApiError(
    404,
    "model_not_found",
    "The model %[var(txn.model),json(utf8s)] does not exist. Known: {known}",
    computed=True,
)


def _route() -> list[str]:
    several = f"{{ var(txn.backend),map({SEVERAL_MAP}) -m found }}"
    return [
        f"http-request lua.form_model {SHOWN} if form",
        f"http-request set-var(txn.model) req.body,json_query('$.model'),bytes(0,{SHOWN}) if !form",
        # Some JSON writers escape the slash, and json_query does not understand that.
        "http-request set-var(txn.model) req.body,regsub('\\\\\\\\/','/',g),json_query('$.model'),bytes(0,"
        f"{SHOWN}) if !form !{{ var(txn.model) -m found }}",
        _return(errors.NO_FORM_MODEL, "if form !{ var(txn.model) -m found }"),
        _return(errors.NO_MODEL, "unless { var(txn.model) -m found }"),
        "http-request set-var(txn.backend) var(txn.model),map(models.map)",
        "http-request return status 404 content-type application/json lf-file unknown-model.json"
        " unless { var(txn.backend) -m found }",
        "http-request set-var(txn.right) var(txn.key),concat(|,txn.backend)",
        # Of two names in a body, HAProxy takes the first, and engines take the last.
        f"http-request lua.model_twice if {several}",
        # lua.form_model sets the variable for each form.
        _return(errors.MODEL_TWICE, f"if {{ var(txn.model_twice) -m bool }} {several}"),
        _return(errors.NO_RIGHT, "unless local or { var(txn.right),map(rights.map) -m found }"),
        f"http-request set-var(txn.wrong_task) var(txn.backend),concat(|,txn.path),map({WRONG_TASKS_MAP})"
        f" unless local {{ path -m str {LOCAL_PATH} }}",
        _return(errors.WRONG_TASK, "if { var(txn.wrong_task) -m found }"),
        "http-request del-header Authorization",
        "http-request set-var(txn.engine_key) var(txn.backend),map(engines.map)",
        'http-request set-header Authorization "Bearer %[var(txn.engine_key)]" if { var(txn.engine_key) -m found }',
    ]


def _metrics(settings: Settings, fleet: Fleet) -> list[str]:
    sets = [backend.name.removeprefix(SET) for backend in fleet.backends if backend.own]
    return _section(
        "frontend metrics",
        [
            f"bind {_bind(settings.bind_address, settings.metrics_port)}",
            "no log",
            *([f"acl set path -m str {SETS_PATH}{name}" for name in sets] or ["acl set always_false"]),
            "http-request use-service prometheus-exporter if { path /metrics } { method GET }",
            "http-request return status 200 content-type text/plain string ok if { path /health }",
            _return(errors.NO_SET, f"if {{ path -m beg {SETS_PATH} }} !set"),
            f"acl deaths path {DEATHS_PATH}",
            _return(errors.NO_PATH, "unless set or deaths or { path /metrics }"),
            _return(errors.wrong_method("GET"), "unless { method GET } or deaths { method POST }"),
            _return(errors.OLD_PROCESS, "if { stopping }"),
            *deaths.service(settings),
            # HAProxy 2.6 passes no arguments to a Lua service, so variables do.
            f"http-request set-var(txn.hold_seconds) int({settings.hold_seconds})",
            f"http-request set-var(txn.key_mark) path,map({MARKS_MAP})",
            "http-request use-service lua.set_view",
        ],
    )


def _backend(backend: Backend, settings: Settings) -> list[str]:
    # lua.hold runs on every request, since an old or a young process has wrong states (gateway.lua).
    asks = settings.hold_seconds or settings.agent_port
    hold = [f"http-request lua.hold {settings.hold_seconds} {settings.agent_port}"] if asks else []
    return _section(
        f"backend {backend.name}",
        [
            "balance leastconn",
            *hold,
            _return(errors.BUSY, f"if {{ queue ge {settings.queue_requests} }} !{{ var(txn.held) -m bool }}"),
            *affinity.rules(backend.routing(settings.routing), settings.engine_requests),
            *(_own_servers(backend, settings) if backend.own else _borrowed_servers(backend, settings)),
        ],
    )


def _weight(settings: Settings) -> str:
    slow_start = f" slowstart {settings.slow_start_seconds}s" if settings.slow_start_seconds else ""
    return f"weight {WEIGHT} maxconn {settings.engine_requests}{slow_start}"


def _own_servers(backend: Backend, settings: Settings) -> list[str]:
    """The engines of the set, with their checks. The HTTP check finds engines that are gone;
    the agent reports everything else."""
    check = f" agent-check agent-port {settings.agent_port} agent-inter 1s" if settings.agent_port else ""
    agent = f"{check}{_asking_for(replace(backend.replicas[0], words=''), settings)}"
    return [
        f"option httpchk GET {adapters.get().health_path}",
        "http-check expect status 200",
        # A refused connection marks an engine down at once. A 500 or 503 does not, since requests may cause these.
        f"default-server {_weight(settings)} observe layer4 error-limit 1 on-error mark-down"
        f" check inter 2s fastinter 500ms downinter 1s fall 2 rise 2{agent}",
        # Next servers and bridges are down except during an update. They are always in the configuration, since a
        # reload would lose a server that was added at run time.
        *(
            f"server {replica.server} {replica.endpoint}{_asks(replica, settings)}"
            for replica in (*backend.replicas, *_others(backend))
        ),
    ]


def _asking_for(replica: Replica, settings: Settings) -> str:
    """The text for the node's agent: name of the engine, name of the gateway, and the server if the engine has two."""
    if not settings.agent_port:
        return ""
    words = [replica.agent_name, asking_name(settings.name), *([replica.words] if replica.words else [])]
    lines = "".join(f"{word}\\n" for word in words)
    return f' agent-send "{lines}"'


def _asks(replica: Replica, settings: Settings) -> str:
    """The agent options of a server that differ from those of the default server."""
    elsewhere = f" agent-addr {replica.agent_address}" if replica.agent_address and settings.agent_port else ""
    own = replica.words or replica.agent_name != replica.set
    return f"{elsewhere}{_asking_for(replica, settings) if own else ''}"


def _others(backend: Backend) -> list[Replica]:
    """The second servers of engines: next servers, and bridges."""
    coming = [replica.next for replica in backend.replicas if replica.next]
    return coming + [replica.bridge for replica in backend.replicas if replica.bridge]


def _borrowed_servers(backend: Backend, settings: Settings) -> list[str]:
    return [
        f"default-server {_weight(settings)}",
        *(
            f"server {replica.alias} {replica.endpoint} track {SET}{replica.set}/{replica.server}"
            for replica in (*backend.replicas, *_others(backend))
        ),
    ]


LOG_FORMAT = (
    '{"time":%Ts.%ms,"id":"%[var(txn.id)]","client":"%ci","key":"%[var(txn.key)]","method":"%HM",'
    '"path":"%[var(txn.path),json(utf8s)]","model":"%[var(txn.model),json(utf8s)]","backend":"%b","engine":"%s",'
    '"status":%ST,"bytes_in":%U,"bytes_out":%B,"ms_request":%TR,"ms_queue":%Tw,"ms_connect":%Tc,"ms_first_byte":%Tr,'
    '"ms_total":%Ta,"end":"%ts","preferred":"%[var(txn.preferred)]","retries":"%rc","queued_engine":%sq,"queued_backend":%bq,'
    f"{deaths.FIELD}}}"
)
"""A line of JSON for each request, without prompts and keys. `end` is HAProxy's termination state (manual, 8.5)."""
