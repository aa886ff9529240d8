import type { PinsEntry, ServerEntry, UpstreamsFile } from '@plat/resources/rendered'
import { type Denial, deny, type Identity, type Target, type ToolLabels, type UpstreamAuth } from '../../call/index.ts'
import { authOf } from './auth.ts'

/** One MCP server as the gateway reaches it. */
export interface Upstream {
  /** `<ns>/<name>`; a static upstream of gateway.json has its bare name. */
  readonly key: string
  readonly url: string
  /** Wait for response headers; null: `upstreamTimeoutSeconds`. */
  readonly timeoutSeconds: number | null
  /** PEM bundle trusted beside the system roots. */
  readonly caPEM: string | null
  /** Protocol revisions that the server speaks; null: not stated. */
  readonly protocolVersions: readonly string[] | null
  readonly trust: Target['trust']
  readonly dataClass: Target['dataClass']
  readonly jurisdiction: string | null
  /** What the gateway shows it. */
  readonly auth: UpstreamAuth
  /** What tool definitions are held against; null: mode `off`. */
  readonly pins: Pins | null
}

/** `pins` of the file, ready to be asked. */
export interface Pins extends Pick<PinsEntry, 'mode' | 'onChange' | 'allowUnpinned'> {
  readonly pins: ReadonlyMap<string, ReadonlySet<string>>
}

/** The way from a name that a caller uses to one server (document 3, "Server name resolution order"): map lookups only. */
export interface Registry {
  resolve(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): Upstream | Denial
  /** By `Target.key`. */
  upstream(key: string): Upstream | null
  /** What all of them are shown; those of gateway.json are shown nothing. */
  readonly auths: readonly UpstreamAuth[]
  /** Feeds `plat_gateway_upstreams_configured`. */
  readonly size: number
}

/** Taint labels are not built yet; a server that has some is refused when it is loaded. */
export const NO_LABELS: ToolLabels = { taints: [], clearTaints: [], sinks: [] }

const RESERVED_PREFIX = 'plat-'

const emptyFile: UpstreamsFile = { version: 1, servers: {}, bindings: {}, agentWeb: {} }

/** Builds the registry of one upstreamsFile (null: none) and the static `upstreams` of gateway.json. */
export function buildRegistry(file: UpstreamsFile | null, statics: Readonly<Record<string, string>>): Registry {
  const { servers, bindings } = file ?? emptyFile
  const entries = Object.entries(servers)
  const ready = (from: typeof entries) => new Map(from.map(([key, entry]) => [key, upstreamOf(key, entry)]))
  return new NamedUpstreams({
    servers: ready(entries.filter(([, entry]) => !entry.implicit)),
    implicit: ready(entries.filter(([, entry]) => entry.implicit)),
    statics: new Map(Object.entries(statics).map(([name, url]) => [name, staticUpstream(name, url)])),
    bindings: new Map(Object.entries(bindings)),
    usable: new Set(entries.flatMap(([key, entry]) => entry.namespaces.map((namespace) => `${namespace}\n${key}`))),
    shared: sharedNames(servers),
  })
}

/** A name that a caller uses is only ever looked up together with its namespace, or among the static names. */
interface Tables {
  /** MCPServers by `<ns>/<name>`. */
  readonly servers: ReadonlyMap<string, Upstream>
  /** `Agent.spec.tools[].upstreamURL` by `<ns>/<agent>-<name>`. */
  readonly implicit: ReadonlyMap<string, Upstream>
  /** `upstreams` of gateway.json by bare name. */
  readonly statics: ReadonlyMap<string, Upstream>
  /** `<ns>/<agent>/<server>` to the key of a server. */
  readonly bindings: ReadonlyMap<string, string>
  /** `<ns>\n<key>`: the namespace may use the server of another one. */
  readonly usable: ReadonlySet<string>
  /** `<ns>/<name>` to the servers of that name that others share with the namespace. */
  readonly shared: ReadonlyMap<string, readonly string[]>
}

class NamedUpstreams implements Registry {
  readonly #tables: Tables
  readonly size: number

  constructor(tables: Tables) {
    this.#tables = tables
    this.size = tables.servers.size + tables.implicit.size + tables.statics.size
  }

  get auths(): readonly UpstreamAuth[] {
    const { servers, implicit } = this.#tables
    return [...servers.values(), ...implicit.values()].map(({ auth }) => auth)
  }

  upstream(key: string): Upstream | null {
    const { servers, implicit, statics } = this.#tables
    return servers.get(key) ?? implicit.get(key) ?? statics.get(key) ?? null
  }

  resolve({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>, name: string): Upstream | Denial {
    const { servers, implicit, statics, bindings, shared } = this.#tables
    if (name.startsWith(RESERVED_PREFIX)) return unknown(name)
    const binding = bindings.get(`${namespace}/${agent}/${name}`)
    if (binding !== undefined) return this.#bound(namespace, binding) ?? unknown(name)

    const own = servers.get(`${namespace}/${name}`)
    if (own !== undefined) return own
    const candidates = shared.get(`${namespace}/${name}`) ?? []
    if (candidates.length > 1) {
      return deny('ambiguous_server', `several servers named ${name} are shared with namespace ${namespace}: bind one`)
    }
    return (
      servers.get(candidates[0] ?? '') ??
      statics.get(name) ??
      implicit.get(`${namespace}/${agent}-${name}`) ??
      unknown(name)
    )
  }

  /** A binding into another namespace holds only while the server is shared with the caller's; it never falls through. */
  #bound(namespace: string, key: string): Upstream | null {
    const mayUse = key.startsWith(`${namespace}/`) || this.#tables.usable.has(`${namespace}\n${key}`)
    return mayUse ? (this.#tables.servers.get(key) ?? null) : null
  }
}

function unknown(name: string): Denial {
  return deny('unknown_server', `no server named ${name.slice(0, 128)}`)
}

function sharedNames(servers: UpstreamsFile['servers']): Map<string, string[]> {
  const shared = new Map<string, string[]>()
  for (const [key, entry] of Object.entries(servers)) {
    if (entry.implicit) continue
    const [namespace, name] = key.split('/')
    for (const other of new Set(entry.namespaces)) {
      if (other === namespace) continue
      const at = `${other}/${name}`
      shared.set(at, [...(shared.get(at) ?? []), key])
    }
  }
  return shared
}

/** Throws on an entry that the decoder refuses. */
function upstreamOf(key: string, entry: ServerEntry): Upstream {
  const auth = authOf(entry.auth, entry.url)
  if (typeof auth === 'string') throw new Error(`servers[${key}].auth${auth}`)
  return {
    key,
    url: entry.url,
    timeoutSeconds: entry.timeoutSeconds ?? null,
    caPEM: entry.caPEM ?? null,
    protocolVersions: entry.protocolVersions ?? null,
    trust: entry.trust,
    dataClass: entry.dataClass,
    jurisdiction: entry.jurisdiction ?? null,
    auth,
    pins: entry.pins === undefined ? null : pinsOf(entry.pins),
  }
}

function pinsOf({ pins, ...rules }: PinsEntry): Pins {
  return { ...rules, pins: new Map(Object.entries(pins).map(([tool, digests]) => [tool, new Set(digests)])) }
}

/** What gateway.json says nothing about stands as for an MCPServer that leaves it out. */
function staticUpstream(name: string, url: string): Upstream {
  return {
    key: name,
    url,
    timeoutSeconds: null,
    caPEM: null,
    protocolVersions: null,
    trust: 'untrusted',
    dataClass: 'internal',
    jurisdiction: null,
    auth: { type: 'none' },
    pins: null,
  }
}
