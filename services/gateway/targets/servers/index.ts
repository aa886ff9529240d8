import { followFile, missingFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { UpstreamsFile } from '@plat/resources/rendered'
import type { BuiltinServer, Identity, Snapshot, Snapshots, Target, ToolLabels } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { createCallable } from './callable.ts'
import { decodeUpstreams } from './decode.ts'
import { buildRegistry, type Registry, type ServeApi, type Upstream } from './registry.ts'
import { createResolveStage, type MissingScopes, registrySlot, type ServerCredentials } from './stage.ts'

export type { AgentWeb, Registry, Upstream } from './registry.ts'
export { createResolveStage, currentTool, registrySlot, targetOf } from './stage.ts'

export interface ServersOptions {
  readonly config: {
    /** Empty for static upstreams only. */
    readonly upstreamsFile: string
    readonly upstreams: Readonly<Record<string, string>>
    readonly policyReloadSeconds: number
  }
  readonly snapshots: Snapshots
  /** Default: only `tools:<name>`. */
  readonly missingScopes?: MissingScopes
  readonly credentials: ServerCredentials
  /** Socket of the stdio bridge; absent: servers that need it are unknown. */
  readonly stdioSocket?: string
  /** Built-in servers; default: none. */
  readonly builtins?: readonly BuiltinServer[]
  /** Whether a server of one namespace can be used in another; absent: always. */
  readonly mayShare?: (namespace: string, other: string) => boolean
  /** Creates the servers of HTTP APIs; absent: they have no tools. */
  readonly serveApi?: ServeApi
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface Servers {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** Returns the server of a target in this snapshot, or null if it was removed. */
  upstream(snapshot: Snapshot, key: string): Upstream | null
  /** Returns the names of the servers that a caller may use, sorted; the same list while neither the token nor the servers change. */
  callable(snapshot: Snapshot, caller: Identity): readonly string[]
  /** Taint labels of a tool of a target's server. */
  labels(snapshot: Snapshot, target: Target, tool: string): ToolLabels
  /** Reads the file; first called before the gateway serves. */
  check(): Promise<void>
  /** Builds the registry again after `mayShare` has changed. */
  refresh(): void
  close(): void
}

/**
 * MCP servers of `upstreamsFile` and `upstreams` (docs/spec/gateway.md, "MCP servers"), reloaded every `policyReloadSeconds`.
 * Without a readable file at start only static upstreams are known; an invalid file leaves the previous one in force.
 */
export function createServers(options: ServersOptions): Servers {
  const { config, snapshots, clock, log, metrics, missingScopes, credentials, builtins, serveApi } = options
  const path = config.upstreamsFile
  const publish = (registry: Registry) => {
    snapshots.publish(registrySlot, registry)
    metrics.gauge('plat_gateway_upstreams_configured').set({}, registry.size)
  }
  const refuse = (problems: readonly string[]) =>
    log.error({ path, problems }, 'upstreamsFile is refused: the servers loaded before stay in use')
  let last: UpstreamsFile | null = null
  const build = (file: UpstreamsFile) =>
    buildRegistry(sharedWithin(file, options.mayShare), config.upstreams, builtins, serveApi)
  const watch =
    path === ''
      ? null
      : followFile({
          path,
          everySeconds: config.policyReloadSeconds,
          clock,
          decode: (bytes) => (bytes === null ? missingFile : decodeUpstreams(bytes)),
          async publish({ file: whole }) {
            const file = options.stdioSocket === undefined ? withoutStdio(whole, log) : whole
            const registry = build(file)
            // Credentials first: a server is served only once its credential was read.
            await credentials.follow(registry.auths)
            last = file
            // Tenants may have changed meanwhile.
            publish(build(file))
            log.info({ path, servers: Object.keys(file.servers).length }, 'servers loaded')
          },
          refuse,
        })
  publish(buildRegistry(null, config.upstreams, builtins))
  return {
    stage: createResolveStage({ snapshots, missingScopes, credentials }),
    upstream: (snapshot, key) => snapshot.get(registrySlot).upstream(key),
    callable: createCallable(missingScopes),
    labels: (snapshot, { key, labels }, tool) => snapshot.get(registrySlot).upstream(key)?.labels.of(tool) ?? labels,
    check: async () => watch?.check(),
    refresh() {
      if (last !== null) publish(build(last))
    },
    close: () => watch?.stop(),
  }
}

/** Removes shares with namespaces that may not use a server: names that others share must not hide those of a namespace. */
function sharedWithin(file: UpstreamsFile, mayShare: ServersOptions['mayShare']): UpstreamsFile {
  if (mayShare === undefined) return file
  const servers = Object.entries(file.servers).map(([key, entry]) => {
    const owner = key.slice(0, key.indexOf('/'))
    return [key, { ...entry, namespaces: entry.namespaces.filter((other) => mayShare(owner, other)) }] as const
  })
  return { ...file, servers: Object.fromEntries(servers) }
}

/** Removes servers that only a gateway of `plat up` can reach. */
function withoutStdio(file: UpstreamsFile, log: Log): UpstreamsFile {
  const entries = Object.entries(file.servers)
  const servers = entries.filter(([, { stdio }]) => stdio !== true)
  if (servers.length === entries.length) return file
  const names = entries.filter(([, { stdio }]) => stdio === true).map(([key]) => key)
  log.error({ servers: names }, 'servers of a plat up have no socket here: they are unknown to this gateway')
  return { ...file, servers: Object.fromEntries(servers) }
}
