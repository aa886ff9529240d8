import type { Server } from 'node:net'
import type { PoolBound, PoolObserver } from '@plat/core'
import type { ListenLimits } from '../limits.ts'
import { PeerConnections } from './peers.ts'

export interface PeerOptions {
  /** Address ranges of load balancers and proxies, exempt from `maxConnectionsPerPeer`. */
  readonly trustedProxies?: readonly string[] | undefined
  readonly meter?: PoolObserver | undefined
}

/** Limits the connections of a server, in total and per peer. Throws on a malformed range. */
export function limitConnections(
  server: Server,
  { maxConnections, maxConnectionsPerPeer: share }: ListenLimits,
  { trustedProxies = [], meter }: PeerOptions,
): void {
  const onRefused = (bound: PoolBound) => meter?.refused(bound)
  const peers = new PeerConnections({ share, trustedProxies, onRefused })
  server.maxConnections = maxConnections
  server.on('connection', (socket) => peers.admit(socket)).on('drop', () => onRefused('total'))
  meter?.watch(() => peers.open)
}
