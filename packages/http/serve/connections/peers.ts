import { isIPv6, type Socket } from 'node:net'
import { type PoolBound, SharedPool } from '@plat/core'
import { createRangeCheck } from '../../dial/addresses.ts'

/** Groups of an IPv6 address that name its network: one host usually owns a whole /64. */
const IPV6_NETWORK_GROUPS = 4

export interface PeerConnectionsOptions {
  readonly share: number
  /**
   * Address ranges of proxies and load balancers, which have no limit because many clients share their address. The constructor throws on a
   * malformed range.
   */
  readonly trustedProxies: readonly string[]
  readonly onRefused: (bound: PoolBound) => void
}

/** Limits the connections of a listener per peer address. The total is limited by the server's `maxConnections`. */
export class PeerConnections {
  readonly #pool: SharedPool
  readonly #isProxy: (address: string) => boolean

  constructor({ share, trustedProxies, onRefused }: PeerConnectionsOptions) {
    this.#pool = new SharedPool({ name: 'connections', total: Number.POSITIVE_INFINITY, shares: [share], onRefused })
    this.#isProxy = trustedProxies.length === 0 ? () => false : createRangeCheck(trustedProxies)
  }

  get open(): number {
    return this.#pool.used
  }

  /** Counts a connection until it closes. Destroys it when its peer is at the limit. */
  admit(socket: Socket): void {
    const { remoteAddress } = socket
    // A connection that closed in the meantime has no address any more.
    if (remoteAddress === undefined) return
    const peer = peerOf(remoteAddress)
    if (this.#isProxy(remoteAddress)) this.#pool.add(peer)
    else if (this.#pool.acquire(peer) !== null) {
      socket.destroy()
      return
    }
    socket.once('close', () => this.#pool.release(peer))
  }
}

/** Returns the unit that counts as one peer: an IPv4 address (also IPv4-mapped), or the /64 of an IPv6 address. */
export function peerOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? []
  const first = groupsOf(head)
  const last = tail === undefined ? [] : groupsOf(tail)
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  const groups = tail === undefined ? first : [...first, ...zeros, ...last]
  return `${groups.slice(0, IPV6_NETWORK_GROUPS).join(':')}::/64`
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':')
}
