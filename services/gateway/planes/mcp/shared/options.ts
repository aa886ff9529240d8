import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Log } from '@plat/process'
import type { ErrorCode } from '../../../call/index.ts'
import type { Plane, RunNested } from '../../../pipeline/index.ts'
import type { ServerPlane } from '../options.ts'
import type { Sealer } from '../seal/seal.ts'
import type { CallableServers } from './servers.ts'

export interface SharedPlaneOptions {
  /** The plane of `/mcp/<name>`. */
  readonly plane: ServerPlane
  readonly callable: CallableServers
  readonly run: RunNested
  /** Adds traces to the planes of nested requests. */
  readonly traced: (plane: Plane) => Plane
  readonly sealer: Sealer
  /** docs/spec/gateway.md: `mcpSeparator`. */
  readonly separator: string
  /** docs/spec/gateway.md: `mcpListSeconds`, in milliseconds. */
  readonly listWaitMs: number
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Counts a server that a list is without. */
  readonly leftOut: (code: ErrorCode) => void
  readonly pools?: PoolObservers<'mcp_sessions'>
}
