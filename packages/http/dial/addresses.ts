import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { AddressPolicy } from './purpose.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [network: Address, bits: number]

/** Where clouds hand out credentials to whoever asks. */
const METADATA: readonly Range[] = ranges(['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128'])

/** Public by number, yet never a place on the internet: the platform service of one cloud. */
const NOT_PUBLIC: readonly Range[] = ranges(['168.63.129.16/32'])

/** IPv6 that is assigned to the internet; everything outside is reserved, local or unassigned. */
const GLOBAL_UNICAST: readonly Range[] = ranges(['2000::/3'])

/** Answers whether an address (as text) may be connected to. */
export type AddressCheck = (address: string, policy: AddressPolicy) => boolean

/**
 * Builds the check. `allowedCIDRs` are exceptions from every policy; one that is malformed throws with its text.
 * What is no address at all, or one whose scope cannot be read, is refused.
 */
export function createAddressCheck(allowedCIDRs: readonly string[]): AddressCheck {
  const allowed = ranges(allowedCIDRs)
  return (text, policy) => {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false
    return readings(ipaddr.parse(text)).every((one) => within(one, allowed) || permits(one, policy))
  }
}

function ranges(cidrs: readonly string[]): Range[] {
  return cidrs.map((cidr) => {
    if (!ipaddr.isValidCIDR(cidr))
      throw new Error(`"${cidr}" is no address range: write it like 10.0.0.0/8 or fd00::/8.`)
    return ipaddr.parseCIDR(cidr)
  })
}

function within(address: Address, list: readonly Range[]): boolean {
  return list.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

function permits(address: Address, policy: AddressPolicy): boolean {
  if (within(address, METADATA)) return false
  if (policy === 'configured') return true
  if (within(address, NOT_PUBLIC)) return false
  if (address.kind() === 'ipv6') return address.range() === 'unicast' && within(address, GLOBAL_UNICAST)
  return address.range() === 'unicast'
}

/**
 * Every way in which a network could read an address: an IPv6 address may carry an IPv4 one that a translator or a tunnel
 * would go to. Each reading must pass.
 */
function readings(address: Address): Address[] {
  if (!(address instanceof ipaddr.IPv6)) return [address]
  const p = address.parts
  const v4 = (high: number, low: number): Address => fromWords(p[high] ?? 0, p[low] ?? 0)
  const zeros = (count: number): boolean => p.slice(0, count).every((word) => word === 0)
  // The whole address is a spelling of an IPv4 one: mapped, translated (RFC 2765), NAT64 (RFC 6052), compatible (RFC 4291).
  if (zeros(5) && p[5] === 0xffff) return [v4(6, 7)]
  if (zeros(4) && p[4] === 0xffff && p[5] === 0) return [v4(6, 7)]
  if (p[0] === 0x64 && p[1] === 0xff9b && p.slice(2, 6).every((word) => word === 0)) return [v4(6, 7)]
  if (zeros(6) && !(p[6] === 0 && (p[7] ?? 0) <= 1)) return [v4(6, 7)]
  return [address, ...tunnelled(address.parts, v4)]
}

/** IPv4 addresses that stand inside a real IPv6 one: local NAT64 (RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214). */
function tunnelled(p: readonly number[], v4: (high: number, low: number) => Address): Address[] {
  const inside: Address[] = []
  if (p[0] === 0x64 && p[1] === 0xff9b && p[2] === 1) inside.push(v4(6, 7))
  if (p[0] === 0x2002) inside.push(v4(1, 2))
  if (p[0] === 0x2001 && p[1] === 0) inside.push(v4(2, 3), fromWords((p[6] ?? 0) ^ 0xffff, (p[7] ?? 0) ^ 0xffff))
  if ((p[4] === 0 || p[4] === 0x200) && p[5] === 0x5efe) inside.push(v4(6, 7))
  return inside
}

function fromWords(high: number, low: number): Address {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}
