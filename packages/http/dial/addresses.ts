import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { AddressPolicy } from './purpose.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [network: Address, bits: number]

/** Metadata services, where clouds hand out credentials without authentication. */
const METADATA: readonly Range[] = ranges(['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128'])

/** Public by number, but never on the internet: Azure's platform service. */
const NOT_PUBLIC: readonly Range[] = ranges(['168.63.129.16/32'])

/** IPv6 assigned to the internet; everything else is reserved, local or unassigned. */
const GLOBAL_UNICAST: readonly Range[] = ranges(['2000::/3'])

/** Returns whether connections to an address (as text) are allowed. */
export type AddressCheck = (address: string, policy: AddressPolicy) => boolean

/**
 * Creates the check. `allowedCIDRs` are exceptions from every policy. Throws on a malformed range, with its text. Refuses text that is not an
 * address, and spellings other than four decimal numbers or RFC 4291: URL parsing has normalized all others.
 */
export function createAddressCheck(allowedCIDRs: readonly string[]): AddressCheck {
  const allowed = ranges(allowedCIDRs)
  return (text, policy) => {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false
    return readings(ipaddr.parse(text)).every((one) => within(one, allowed) || permits(one, policy))
  }
}

/**
 * Returns a function that checks whether an address is in one of the ranges, in any form that a network may interpret. Throws on a malformed range.
 */
export function createRangeCheck(cidrs: readonly string[]): (address: string) => boolean {
  const known = ranges(cidrs)
  return (text) => {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false
    return readings(ipaddr.parse(text)).every((one) => within(one, known))
  }
}

function ranges(cidrs: readonly string[]): Range[] {
  return cidrs.map((cidr) => {
    if (!isAddressRange(cidr))
      throw new Error(`"${cidr}" is not an address range: write it like 10.0.0.0/8 or fd00::/8.`)
    return ipaddr.parseCIDR(cidr)
  })
}

/**
 * Returns whether a range is in canonical form. Octal and short numbers are ambiguous, a zone is never valid here, and an IPv4 range inside IPv6
 * would never match, since such addresses are read as IPv4.
 */
export function isAddressRange(cidr: string): boolean {
  const [, network = ''] = /^([^/%]+)\/(?:0|[1-9]\d{0,2})$/.exec(cidr) ?? []
  if (isIP(network) === 0 || !ipaddr.isValidCIDR(cidr)) return false
  return spelledIPv4(ipaddr.parse(network)) === null
}

function within(address: Address, list: readonly Range[]): boolean {
  return list.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

function permits(address: Address, policy: AddressPolicy): boolean {
  if (policy === 'metadata') return true
  if (within(address, METADATA)) return false
  if (policy === 'configured') return true
  if (within(address, NOT_PUBLIC)) return false
  if (address.kind() === 'ipv6') return address.range() === 'unicast' && within(address, GLOBAL_UNICAST)
  return address.range() === 'unicast'
}

/** Returns all interpretations of an address: an IPv6 address may embed an IPv4 address that a translator or tunnel would use. Each one must pass. */
function readings(address: Address): Address[] {
  const spelled = spelledIPv4(address)
  if (spelled !== null) return [spelled]
  return address instanceof ipaddr.IPv6 ? [address, ...tunnelled(address.parts)] : [address]
}

/**
 * Returns the IPv4 address that an IPv6 address encodes as a whole: mapped, compatible (RFC 4291), translated (RFC 2765) or NAT64 (RFC 6052); else
 * null. `::` and `::1` do not encode one.
 */
function spelledIPv4(address: Address): Address | null {
  if (!(address instanceof ipaddr.IPv6)) return null
  const p = address.parts
  const isPrefix = (...words: readonly number[]): boolean => words.every((word, at) => p[at] === word)
  const spelled =
    isPrefix(0, 0, 0, 0, 0, 0xffff) ||
    isPrefix(0, 0, 0, 0, 0xffff, 0) ||
    isPrefix(0x64, 0xff9b, 0, 0, 0, 0) ||
    (isPrefix(0, 0, 0, 0, 0, 0) && !(p[6] === 0 && (p[7] ?? 0) <= 1))
  return spelled ? fromWords(p[6], p[7]) : null
}

/** Returns IPv4 addresses embedded in an IPv6 one: local NAT64 (RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214). */
function tunnelled(p: readonly number[]): Address[] {
  const inside: Address[] = []
  if (p[0] === 0x64 && p[1] === 0xff9b && p[2] === 1) inside.push(...localNat64(p))
  if (p[0] === 0x2002) inside.push(fromWords(p[1], p[2]))
  if (p[0] === 0x2001 && p[1] === 0) {
    inside.push(fromWords(p[2], p[3]), fromWords((p[6] ?? 0) ^ 0xffff, (p[7] ?? 0) ^ 0xffff))
  }
  if ((p[4] === 0 || p[4] === 0x200) && p[5] === 0x5efe) inside.push(fromWords(p[6], p[7]))
  return inside
}

/** Prefixes of 48, 56, 64 and 96 bits place the address differently around the zero byte (RFC 6052, section 2.2). */
function localNat64([, , , p3 = 0, p4 = 0, p5 = 0, p6 = 0, p7 = 0]: readonly number[]): Address[] {
  const joined = (high: number, low: number): number => ((high & 0xff) << 8) | (low >> 8)
  return [
    fromWords(p3, joined(p4, p5)),
    fromWords(((p3 & 0xff) << 8) | (p4 & 0xff), p5),
    fromWords(joined(p4, p5), joined(p5, p6)),
    fromWords(p6, p7),
  ]
}

function fromWords(high = 0, low = 0): Address {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff])
}
