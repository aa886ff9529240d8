import {
  type BuiltinServer,
  type Call,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Parsed,
  type Slot,
  type Snapshots,
  type Target,
  type UpstreamAuth,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { buildRegistry, type Registry, type Upstream } from './registry.ts'

/** Where the servers stand in the snapshot. */
export const registrySlot: Slot<Registry> = { name: 'servers', initial: buildRegistry(null, {}) }

/**
 * Which scopes a caller lacks. Null: none. Else all that the call needs, separated by spaces, as the caller's issuer writes them.
 */
export type MissingScopes = (identity: Identity, server: string, tool: string | null) => string | null

const toolsScope: MissingScopes = ({ scopes }, server) => (scopes.has(`tools:${server}`) ? null : `tools:${server}`)

/** What servers are shown, as far as they must know. */
export interface ServerCredentials {
  /** Reads what these servers need, and forgets everything else. */
  follow(auths: readonly UpstreamAuth[]): Promise<void>
  /** Why it is plain already that this caller can make no call of the server; null: nothing is known against it. */
  missing(server: Pick<Upstream, 'key' | 'auth'>, identity: Identity): Denial | null
}

export interface ResolveOptions {
  readonly snapshots: Snapshots
  /** Default: `tools:<name>` alone. */
  readonly missingScopes?: MissingScopes | undefined
  readonly credentials: Pick<ServerCredentials, 'missing'>
}

/**
 * From the name that the caller used to the one server it means. The scope is asked first, so that names cannot be
 * found out by trying; then the registry of the pass is asked.
 */
export function createResolveStage({
  snapshots,
  missingScopes = toolsScope,
  credentials,
}: ResolveOptions): Stage<'resolve', 'identity', 'target'> {
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      if (!call.operation.startsWith('mcp.')) return deny('not_built', `${call.operation} is not built yet`)
      const scope = missingScopes(call.facts.identity, call.server, toolOf(call))
      if (scope !== null) return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
      const upstream = call.snapshot.get(registrySlot).resolve(call.facts.identity, call.server)
      if (isDenial(upstream)) return upstream
      // Asked before anybody is asked and anything is held: a call that cannot be made costs nothing.
      if (upstream.builtin !== null) return builtinTarget(call, upstream, upstream.builtin)
      return credentials.missing(upstream, call.facts.identity) ?? { target: targetOf(call, upstream) }
    },
    still: (call) => stillThere(call, snapshots),
  })
}

/** What a server of the gateway itself says of a call of its tools: that it must not be made, or what it asks for. */
function builtinTarget(
  call: Call<'identity'>,
  upstream: Upstream,
  server: BuiltinServer,
): Denial | { readonly target: Target } {
  const target = targetOf(call, upstream)
  if (call.operation !== 'mcp.call') return { target }
  const caller = { identity: call.facts.identity, snapshot: call.snapshot }
  const tool = server.tools(caller).find(({ name }) => name === call.name)
  if (tool === undefined) return deny('unknown_tool', `${server.name} has no such tool for this caller`)
  const args = call.body?.argsValue ?? {}
  const no = tool.judge(args, caller)
  if (no !== null) return no
  const requirements = tool.requirements(args)
  return { target: requirements === null ? target : { ...target, requirements } }
}

/** A long call ends when its name has gone or leads to another server. */
function stillThere(call: Call<'identity' | 'target'>, snapshots: Snapshots): Denial | null {
  if (snapshots.current === call.snapshot) return null
  const registry = snapshots.current.get(registrySlot)
  if (registry === call.snapshot.get(registrySlot)) return null
  const upstream = registry.resolve(call.facts.identity, call.server)
  if (isDenial(upstream)) return upstream
  return upstream.key === call.facts.target.key ? null : deny('unknown_server', `${call.server} has moved`)
}

/** Policies match the name that the caller used; `key` says which server it is. Only calls name a tool, and answers to what one asked. */
function targetOf(call: Pick<Parsed, 'operation' | 'server' | 'name'>, upstream: Upstream): Target {
  const tool = toolOf(call)
  const describes = call.operation === 'mcp.list' || call.operation === 'mcp.control'
  return {
    // Whoever answers, it is MCP that is spoken: what looks at messages must not miss these.
    kind: 'mcp',
    key: upstream.key,
    server: call.server,
    tool,
    trust: upstream.trust,
    dataClass: upstream.dataClass,
    jurisdiction: upstream.jurisdiction,
    labels: describes ? upstream.labels.described : upstream.labels.of(tool),
    builtin: upstream.builtin !== null,
  }
}

function toolOf(call: Pick<Parsed, 'operation' | 'name'>): string | null {
  return call.operation === 'mcp.call' || call.operation === 'mcp.answer' ? call.name : null
}
