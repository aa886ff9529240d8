import {
  ALL_SERVERS,
  type BuiltinServer,
  type Call,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Operation,
  type Parsed,
  type Slot,
  type Snapshots,
  type Target,
  toolsScopeOf,
  type UpstreamAuth,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { buildRegistry, type Registry, type Upstream } from './registry.ts'

/** Snapshot slot of the servers. */
export const registrySlot: Slot<Registry> = { name: 'servers', initial: buildRegistry(null, {}) }

/** Returns null if the caller has the scopes, else all required ones, separated by spaces, as its issuer writes them. */
export type MissingScopes = (identity: Identity, server: string, tool: string | null) => string | null

export const toolsScope: MissingScopes = ({ scopes }, server) => {
  const scope = toolsScopeOf(server)
  return scopes.has(scope) ? null : scope
}

/** Credentials of servers, as far as their stage needs them. */
export interface ServerCredentials {
  /** Reads the credentials of these servers, and forgets all others. */
  follow(auths: readonly UpstreamAuth[]): Promise<void>
  /** Returns why this caller can make no call of the server, as far as known, or null. */
  missing(server: Pick<Upstream, 'key' | 'auth'>, identity: Identity): Denial | null
}

export interface ResolveOptions {
  readonly snapshots: Snapshots
  /** Default: only `tools:<name>`. */
  readonly missingScopes?: MissingScopes | undefined
  readonly credentials: Pick<ServerCredentials, 'missing'>
}

/**
 * Resolves a caller's name to one server. Checks the scope first, so that names cannot be
 * probed, then looks it up in the registry of the pass.
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
      if (call.server === ALL_SERVERS) return ofAllServers(call)
      const scope = missingScopes(call.facts.identity, call.server, toolOf(call))
      if (scope !== null) return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
      const upstream = call.snapshot.get(registrySlot).resolve(call.facts.identity, call.server)
      if (isDenial(upstream)) return upstream
      // Checked before any approval or hold: an impossible call costs nothing.
      const missing = isLocal(upstream) ? null : credentials.missing(upstream, call.facts.identity)
      if (missing !== null) return missing
      return upstream.builtin === null
        ? { target: targetOf(call, upstream) }
        : builtinTarget(call, upstream, upstream.builtin)
    },
    still: (call) => stillThere(call, snapshots),
  })
}

/** Target of requests to the address of all servers that the gateway answers itself, with nested calls for what servers receive. */
const everyServer: Target = {
  ...unresolved,
  kind: 'mcp',
  key: ALL_SERVERS,
  server: 'mcp',
  trust: 'trusted',
  dataClass: 'internal',
  builtin: true,
}

/** Other requests are for one server, which their names must state. */
function ofAllServers({ operation }: Call<'identity'>): Denial | { readonly target: Target } {
  if (operation === 'mcp.all' || operation === 'mcp.streams') return { target: everyServer }
  if (operation === 'mcp.call') return deny('unknown_tool', 'names of tools at /mcp begin with the name of a server')
  return deny('not_found', 'names and URIs at /mcp begin with the name of a server')
}

/** Returns the decision of a built-in server about a call: a denial or its requirements. */
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

/** A long call ends when its name is removed or resolves to another server. */
function stillThere(call: Call<'identity' | 'target'>, snapshots: Snapshots): Denial | null {
  if (snapshots.current === call.snapshot || call.server === ALL_SERVERS) return null
  const registry = snapshots.current.get(registrySlot)
  if (registry === call.snapshot.get(registrySlot)) return null
  const upstream = registry.resolve(call.facts.identity, call.server)
  if (isDenial(upstream)) return upstream
  return upstream.key === call.facts.target.key ? null : deny('unknown_server', `${call.server} has moved`)
}

/** Policies match the name that the caller used; `key` identifies the server. Only calls name a tool, and responses to input requests. */
export function targetOf(call: Pick<Parsed, 'operation' | 'server' | 'name'>, upstream: Upstream): Target {
  const tool = toolOf(call)
  const describes = call.operation === 'mcp.list' || call.operation === 'mcp.control'
  return {
    // Also for built-in servers: stages that inspect MCP messages must see these.
    kind: 'mcp',
    key: upstream.key,
    server: call.server,
    ...(upstream.published !== null && { alias: upstream.published }),
    tool,
    trust: upstream.trust,
    dataClass: upstream.dataClass,
    jurisdiction: upstream.jurisdiction,
    labels: describes ? upstream.labels.described : upstream.labels.of(tool),
    builtin: isLocal(upstream),
  }
}

/** Returns what records of calls lack about a tool of a resolved name: for simulations of policies. */
export function currentTool(found: Upstream | Denial, tool: string | null) {
  if (isDenial(found)) return { sinks: [], alias: null }
  return { sinks: tool === null ? [] : found.labels.of(tool).sinks, alias: found.published }
}

/** Returns whether the gateway does the work of a server itself. */
function isLocal({ builtin }: Upstream): boolean {
  return builtin !== null && builtin.isRemote !== true
}

const WITH_TOOL: ReadonlySet<Operation> = new Set<Operation>(['mcp.call', 'mcp.answer', 'mcp.task'])

function toolOf(call: Pick<Parsed, 'operation' | 'name'>): string | null {
  return WITH_TOOL.has(call.operation) ? call.name : null
}
