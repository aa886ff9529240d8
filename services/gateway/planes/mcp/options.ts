import type { Clock, PoolObservers } from '@plat/core'
import type { Call, Denial, Identity, Snapshot, WireRequest } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Plane } from '../../pipeline/plane.ts'
import type { Review } from '../../pipeline/stage.ts'
import type { RefusalForm } from './answer.ts'
import type { McpRequest } from './message.ts'
import type { Reader } from './read.ts'
import type { Sealed } from './seal/seal.ts'
import type { CancelledTask, McpTasks } from './tasks/tasks.ts'
import type { Forwarder, McpUpstream } from './upstream/open.ts'

/** Looks up servers. */
export interface Upstreams {
  /** Returns the server with this `target.key`; null when it is not in the snapshot. */
  upstream(snapshot: Snapshot, key: string): McpUpstream | null
  /** Returns the server to which this name resolves for the caller, regardless of its scopes; null when there is none. */
  named(snapshot: Snapshot, identity: Identity, server: string): McpUpstream | null
  /** Returns the one name of a server that this caller may name in two ways; any other name as it is. */
  nameOf(snapshot: Snapshot, identity: Identity, name: string): string
  /** Returns the revisions to which the server that `named` returns is restricted; null when it is not, or there is none. */
  protocolVersions(snapshot: Snapshot, identity: Identity, server: string): readonly string[] | null
}

/** How calls of an agent are answered. */
export interface ClientSettings {
  readonly refusals: RefusalForm
  /** A `tools/call` that waits for an approval is refused with `approval_pending` after this time. */
  readonly answerAfterMs: number
}

export interface McpPlaneOptions extends Omit<Forwarder, 'reachability' | 'abandoned' | 'tasks'> {
  readonly upstreams: Upstreams
  /** Returns the settings of the caller's agent. */
  readonly clientOf: (snapshot: Snapshot, caller: Identity) => ClientSettings
  /** docs/spec/gateway.md: `maxBodyBytes`. */
  readonly maxBodyBytes: number
  /** docs/spec/gateway.md: `bodyReadTimeoutSeconds`, in milliseconds. */
  readonly bodyReadTimeoutMs: number
  /** docs/spec/gateway.md: `corsOrigins`. A request with any other `Origin` is refused. */
  readonly origins: ReadonlySet<string>
  /** docs/spec/gateway.md: `identity.resourceBaseURL`; null when empty. */
  readonly resourceBaseURL: string | null
  readonly tasks: McpTasks
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'abandoned_calls'>
}

/** A plane that can also send requests for the gateway itself. */
export interface RequestingPlane extends Plane {
  /** Resolves to all pages of the tools that the server of the call offers its caller. Numbers keep their source text. Never rejects. */
  listTools(call: Call<'identity' | 'target'>): Promise<readonly unknown[] | Denial>
}

/** A plane that cancels tasks at their servers. */
export interface TaskPlane {
  /** Reviews responses that state tasks. */
  readonly taskReview: Review<'identity' | 'target'>
  /** See `CancelTask`; servers are those of this snapshot. */
  cancelTask(snapshot: Snapshot, task: CancelledTask, owner: Identity): Promise<boolean>
}

/** The plane of one server, as the address of all servers uses it. */
export interface ServerPlane extends Plane, Reader {
  readonly clock: Clock
  /** Returns the request that was read; undefined: none was. */
  requestOf(wire: WireRequest): McpRequest | undefined
  /** Sets the server's session for a request that was read, and the server's revision in it. */
  useSession(wire: WireRequest, session: Sealed | null, revision: string): void
  /** Ends requests of the client that wait for an approval: the one that a `notifications/cancelled` names, or all of a session that ends. */
  leaveHeld(call: Call<'identity'>, request: McpRequest): void
}
