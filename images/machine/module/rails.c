// SPDX-License-Identifier: GPL-2.0
/*
 * Network devices rail0, rail1, … with the settings of lossless Ethernet (DCB): PFC, ETS, and priorities by DSCP.
 * They drop all packets, and only keep the settings, for tests of `dcb` and of what uses `dcb`.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/dcbnl.h>

#define MOST 8

static unsigned int count = 2;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "number of network devices");

struct settings {
	struct ieee_ets ets;
	struct ieee_pfc pfc;
	u8 mode;
};

static int get_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct settings *own = netdev_priv(dev);

	*ets = own->ets;
	ets->ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static int set_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct settings *own = netdev_priv(dev);

	own->ets = *ets;
	return 0;
}

static int get_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct settings *own = netdev_priv(dev);

	*pfc = own->pfc;
	pfc->pfc_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static int set_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct settings *own = netdev_priv(dev);

	own->pfc = *pfc;
	return 0;
}

static u8 get_mode(struct net_device *dev)
{
	struct settings *own = netdev_priv(dev);

	return own->mode;
}

static u8 set_mode(struct net_device *dev, u8 mode)
{
	struct settings *own = netdev_priv(dev);

	if (!(mode & DCB_CAP_DCBX_VER_IEEE))
		return 1;
	own->mode = mode;
	return 0;
}

static const struct dcbnl_rtnl_ops dcb = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_setapp = dcb_ieee_setapp,
	.ieee_delapp = dcb_ieee_delapp,
	.getdcbx = get_mode,
	.setdcbx = set_mode,
};

static netdev_tx_t drop(struct sk_buff *packet, struct net_device *dev)
{
	dev_kfree_skb(packet);
	return NETDEV_TX_OK;
}

static const struct net_device_ops operations = {
	.ndo_start_xmit = drop,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_mac_address = eth_mac_addr,
};

static struct net_device *devices[MOST];

static void prepare(struct net_device *dev)
{
	struct settings *own = netdev_priv(dev);
	int priority;

	ether_setup(dev);
	dev->netdev_ops = &operations;
	dev->dcbnl_ops = &dcb;
	dev->max_mtu = 9978;
	own->mode = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	for (priority = 0; priority < IEEE_8021QAZ_MAX_TCS; priority++) {
		own->ets.prio_tc[priority] = priority;
		own->ets.tc_tsa[priority] = IEEE_8021QAZ_TSA_VENDOR;
	}
}

static void remove_all(void)
{
	int number;

	for (number = 0; number < MOST && devices[number]; number++) {
		unregister_netdev(devices[number]);
		free_netdev(devices[number]);
		devices[number] = NULL;
	}
}

static int __init start(void)
{
	int number, error;

	for (number = 0; number < min_t(unsigned int, count, MOST); number++) {
		u8 mac[ETH_ALEN] = { 0x02, 0x00, 0x00, 0x00, 0x00, number + 1 };
		struct net_device *dev = alloc_netdev(sizeof(struct settings), "rail%d", NET_NAME_ENUM, prepare);

		if (!dev) {
			remove_all();
			return -ENOMEM;
		}
		/* The permanent address, which is the same after each boot. */
		eth_hw_addr_set(dev, mac);
		error = register_netdev(dev);
		if (error) {
			free_netdev(dev);
			remove_all();
			return error;
		}
		devices[number] = dev;
	}
	return 0;
}

module_init(start);
module_exit(remove_all);
MODULE_DESCRIPTION("Network devices with DCB, for tests");
MODULE_LICENSE("GPL");
