import type { FlagTable } from '@plat/config'
import { isAddressRange } from '../../dial/addresses.ts'
import { defaultLimits } from '../limits.ts'

export const peerFlags = {
  'max-connections-per-peer': {
    type: 'int',
    default: defaultLimits.maxConnectionsPerPeer,
    min: 1,
    max: defaultLimits.maxConnections,
    help: 'Open connections of one peer address, of IPv6 one /64; more are closed as they come.',
  },
  'trusted-proxies': {
    type: 'list',
    help: 'Address ranges of load balancers and proxies in front, separated by commas: -max-connections-per-peer does not hold for them.',
  },
} as const satisfies FlagTable

/** Returns the problems of the flag values, one line each, naming the flag. */
export function peerProblems({ trustedProxies }: { readonly trustedProxies: readonly string[] }): readonly string[] {
  return trustedProxies
    .filter((range) => !isAddressRange(range))
    .map((range) => `-trusted-proxies ${range}: must be an address range such as 10.0.0.0/8 or fd00::/8`)
}
