// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart in deploy/chart with Helm's own engine: what it
// renders is a configuration that the program accepts, in a Pod that fits it, and its
// schema refuses values that would not work.
package chart
