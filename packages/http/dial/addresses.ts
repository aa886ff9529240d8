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
 * What is no address at all is refused, and so is every spelling but four decimal numbers or RFC 4291: a URL turns others
 * into these before they come here.
 */
export function createAddressCheck(allowedCIDRs: readonly string[]): AddressCheck {
  const allowed = ranges(allowedCIDRs)
  return (text, policy) => {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false
    return readings(ipaddr.parse(text)).every((one) => within(one, allowed) || permits(one, policy))
  }
}

/** Answers whether an address lies in one of the ranges, however a network reads it. Throws on a malformed range. */
export function createRangeCheck(cidrs: readonly string[]): (address: string) => boolean {
  const known = ranges(cidrs)
  return (text) => {
    if (isIP(text) === 0 || !ipaddr.isValid(text)) return false
    return readings(ipaddr.parse(text)).every((one) => within(one, known))
  }
}

function ranges(cidrs: readonly string[]): Range[] {
  return cidrs.map((cidr) => {
    if (!isAddressRange(cidr)) throw new Error(`"${cidr}" is no address range: write it like 10.0.0.0/8 or fd00::/8.`)
    return ipaddr.parseCIDR(cidr)
  })
}

/**
 * A range in its one spelling: octal and short numbers mean different networks to different readers, a zone means none of
 * ours, and an IPv4 range inside IPv6 would never be met, because such addresses are read as the IPv4 ones that they are.
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

/**
 * Every way in which a network could read an address: an IPv6 address may carry an IPv4 one that a translator or a tunnel
 * would go to. Each reading must pass.
 */
function readings(address: Address): Address[] {
  const spelled = spelledIPv4(address)
  if (spelled !== null) return [spelled]
  return address instanceof ipaddr.IPv6 ? [address, ...tunnelled(address.parts)] : [address]
}

/**
 * The IPv4 address of which the whole IPv6 one is a spelling: mapped, compatible (RFC 4291), translated (RFC 2765), NAT64
 * (RFC 6052). `::` and `::1` are addresses of their own.
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

/** IPv4 addresses that stand inside a real IPv6 one: local NAT64 (RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214). */
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

/** Prefixes of 48, 56, 64 and 96 bits put the address into different places, around the byte that is always zero (RFC 6052, section 2.2). */
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
