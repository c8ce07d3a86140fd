// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// settings of the network namespace: the node routes between pods, and packets that cross the bridge pass iptables, which is
// how Services and policies take effect.
var settings = map[string]string{
	"/proc/sys/net/ipv4/ip_forward":                "1",
	"/proc/sys/net/bridge/bridge-nf-call-iptables": "1",
}

// setUpNetwork gives the empty network namespace its loopback, the node's address and a route for the service range. There
// is no default route: nothing in here can reach the machine's network. The service range needs a route all the same, or
// connect() fails before kube-proxy's rules see the packet.
func setUpNetwork() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	if err := addPair(); err != nil {
		return err
	}
	if err := routeServices(); err != nil {
		return err
	}
	for path, value := range settings {
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s (is the kernel's module for it loaded?): %w", path, err)
		}
	}
	return nil
}

// addPair makes the node's interface. Both ends of the pair stay in the namespace.
func addPair() error {
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: node.Interface}, PeerName: node.PeerInterface}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the node's interface: %w", err)
	}
	for name, address := range map[string]string{node.Interface: node.Address, node.PeerInterface: node.PeerAddress} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find interface %s: %w", name, err)
		}
		network := net.IPNet{IP: node.IP(address), Mask: net.CIDRMask(node.AddressBits, 32)}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: &network}); err != nil {
			return fmt.Errorf("give interface %s its address: %w", name, err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("start interface %s: %w", name, err)
		}
	}
	return nil
}

func routeServices() error {
	link, err := netlink.LinkByName(node.Interface)
	if err != nil {
		return fmt.Errorf("find the node's interface: %w", err)
	}
	_, services, err := net.ParseCIDR(node.ServiceRange)
	if err != nil {
		return fmt.Errorf("read service range: %w", err)
	}
	route := netlink.Route{LinkIndex: link.Attrs().Index, Dst: services, Src: node.IP(node.Address)}
	if err := netlink.RouteAdd(&route); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("route the service range: %w", err)
	}
	return nil
}
