// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// times is a quantity so many times.
func times(quantity resource.Quantity, factor int64) resource.Quantity {
	product := quantity.DeepCopy()
	product.Mul(factor)
	return product
}

// multiple is each amount so many times.
func multiple(list corev1.ResourceList, factor int64) corev1.ResourceList {
	product := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		product[name] = times(quantity, factor)
	}
	return product
}

// sum adds amounts up.
func sum(lists ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			added, known := total[name]
			if !known {
				total[name] = quantity.DeepCopy()
				continue
			}
			added.Add(quantity)
			total[name] = added
		}
	}
	return total
}

// minus is what is left of amounts, of each resource that they name; never less than nothing.
func minus(list, taken corev1.ResourceList) corev1.ResourceList {
	left := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		rest := quantity.DeepCopy()
		rest.Sub(taken[name])
		if rest.Sign() < 0 {
			rest = resource.Quantity{Format: quantity.Format}
		}
		left[name] = rest
	}
	return left
}

// larger has the larger amount of each resource.
func larger(a, b corev1.ResourceList) corev1.ResourceList {
	return pick(a, b, 1)
}

// smaller has the smaller amount of each resource; of one that only one of the two names, that.
func smaller(a, b corev1.ResourceList) corev1.ResourceList {
	return pick(a, b, -1)
}

func pick(a, b corev1.ResourceList, sign int) corev1.ResourceList {
	picked := maps.Clone(a)
	if picked == nil {
		picked = corev1.ResourceList{}
	}
	for name, quantity := range b {
		if other, known := picked[name]; !known || quantity.Cmp(other) == sign {
			picked[name] = quantity.DeepCopy()
		}
	}
	return picked
}

// within tells whether amounts are within others, which name every resource that counts.
func within(list, bounds corev1.ResourceList) bool {
	for name, bound := range bounds {
		if amount := list[name]; amount.Cmp(bound) > 0 {
			return false
		}
	}
	return true
}

// only has the amounts of some resources alone.
func only(list corev1.ResourceList, names ...corev1.ResourceName) corev1.ResourceList {
	some := make(corev1.ResourceList, len(names))
	for _, name := range names {
		if quantity, known := list[name]; known {
			some[name] = quantity.DeepCopy()
		}
	}
	return some
}

func number(of int32) resource.Quantity { return *resource.NewQuantity(int64(of), resource.DecimalSI) }
