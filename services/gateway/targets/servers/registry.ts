import type { ApiTool, PinsEntry, ServerEntry, UpstreamsFile } from '@plat/resources/rendered'
import {
  type BuiltinServer,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Target,
  type UpstreamAuth,
} from '../../call/index.ts'
import { authOf } from './auth.ts'
import { type TaintRules, taintRules } from './labels.ts'

/** An MCP server. */
export interface Upstream {
  /** `<ns>/<name>`; for a static upstream of gateway.json its bare name. */
  readonly key: string
  readonly url: string
  /** Run by `plat up`, and reached over the socket of its stdio bridge. */
  readonly stdio: boolean
  /** Run by a Deployment behind a stdio bridge. */
  readonly stdioService: boolean
  /** Timeout of response headers; null for `upstreamTimeoutSeconds`. */
  readonly timeoutSeconds: number | null
  /** Additional CA bundle in PEM. */
  readonly caPEM: string | null
  /** Supported protocol revisions, or null if not stated. */
  readonly protocolVersions: readonly string[] | null
  readonly trust: Target['trust']
  readonly dataClass: Target['dataClass']
  readonly jurisdiction: string | null
  /** Published name of an implicit server, which policies may use as well; null: it has one name. */
  readonly published: string | null
  /** Authentication of the gateway to the server. */
  readonly auth: UpstreamAuth
  /** Pins of tool definitions; null in mode `off`. */
  readonly pins: Pins | null
  /** Profile of data-loss prevention, or null. */
  readonly dlpProfile: string | null
  /** Taint labels of its tools. */
  readonly labels: TaintRules
  /** Set for servers whose MCP messages the gateway answers itself: built-in ones, which have no URL, and HTTP APIs. */
  readonly builtin: BuiltinServer | null
}

/** `pins` of the file, indexed. */
export interface Pins extends Pick<PinsEntry, 'mode' | 'onChange' | 'allowUnpinned'> {
  readonly pins: ReadonlyMap<string, ReadonlySet<string>>
}

/** Resolves a caller's name to one server (docs/spec/gateway.md, "Server name resolution order") by map lookups only. */
export interface Registry {
  resolve(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): Upstream | Denial
  /**
   * Returns the name under which everything decides about a server: `<name>` for the published name `<agent>-<name>` of an implicit server of this
   * agent, and any other name as it is.
   */
  nameOf(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): string
  /** Returns `protocolVersions` of the server to which `resolve` leads; null: not restricted, or there is none. */
  protocolVersions(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): readonly string[] | null
  /** By `Target.key`. */
  upstream(key: string): Upstream | null
  /** Returns the web access of an agent by the file, or null. */
  web(caller: Pick<Identity, 'namespace' | 'agent'>): AgentWeb | null
  /** Returns the browser access of an agent by the file, or null. */
  browser(caller: Pick<Identity, 'namespace' | 'agent'>): AgentBrowser | null
  /** Returns how calls of an agent are answered by the file, or null. */
  client(caller: Pick<Identity, 'namespace' | 'agent'>): AgentClient | null
  /** All servers, with who may name them. */
  readonly listed: readonly ListedServer[]
  /** Authentication of all servers; those of gateway.json have none. */
  readonly auths: readonly UpstreamAuth[]
  /** Value of `plat_gateway_upstreams_configured`. */
  readonly size: number
  /** Whether any tool clears taints; otherwise labels are permanent. */
  readonly clears: boolean
}

/** `agentWeb` of the file: `Agent.spec.web` (docs/spec/crds.md). */
export type AgentWeb = UpstreamsFile['agentWeb'][string]

/** `agentClients` of the file: `refusals` and `approvals` of `Agent.spec` (docs/spec/crds.md). */
export type AgentClient = NonNullable<UpstreamsFile['agentClients']>[string]

/** Allowed domains of `Agent.spec.browser` and denied ones of `Agent.spec.web` (docs/spec/crds.md). */
export type AgentBrowser = Pick<AgentWeb, 'allowedDomains' | 'deniedDomains'>

/** A server with who may name it. */
export interface ListedServer {
  readonly upstream: Upstream
  /** Its own namespace; null: any namespace, for servers of gateway.json and built-in ones. */
  readonly namespace: string | null
  /** Other namespaces that may use it. */
  readonly sharedWith: readonly string[]
  /** Of one agent: `tools[].upstreamURL`. */
  readonly isImplicit: boolean
}

/** Creates the MCP server of an HTTP API. */
export type ServeApi = (upstream: Upstream, tools: readonly ApiTool[]) => BuiltinServer

const withoutTools: ServeApi = ({ key, trust, dataClass, labels }) => ({
  ...{ name: key, title: key, instructions: '', isRemote: true, trust, dataClass },
  labels: (tool) => labels.of(tool),
  tools: () => [],
})

const RESERVED_PREFIX = 'plat-'

const emptyFile: UpstreamsFile = { version: 1, servers: {}, bindings: {}, agentWeb: {} }

/** Builds the registry of an upstreamsFile (null for none), the static `upstreams` of gateway.json, and built-in servers. */
export function buildRegistry(
  file: UpstreamsFile | null,
  statics: Readonly<Record<string, string>>,
  builtins: readonly BuiltinServer[] = [],
  serveApi: ServeApi = withoutTools,
): Registry {
  const { servers, bindings, agentWeb, agentClients = {} } = file ?? emptyFile
  const entries = Object.entries(servers).map(([key, entry]) => ({ entry, upstream: upstreamOf(key, entry, serveApi) }))
  return new NamedUpstreams({
    namespaces: namespacesOf(entries, bindings),
    servers: byKey(entries.filter(({ entry }) => !entry.implicit)),
    implicit: byKey(entries.filter(({ entry }) => entry.implicit)),
    statics: new Map(Object.entries(statics).map(([name, url]) => [name, staticUpstream(name, url)])),
    builtins: new Map(builtins.map((server) => [server.name, builtinUpstream(server)])),
    agentWeb: new Map(Object.entries(agentWeb)),
    agentBrowser: new Map(Object.entries(agentWeb).map(([key, web]) => [key, browserOf(web)])),
    agentClients: new Map(Object.entries(agentClients)),
    filed: entries.map(listedOf),
  })
}

/** An entry of the file with its server. */
interface Filed {
  readonly entry: ServerEntry
  readonly upstream: Upstream
}

function listedOf({ entry, upstream }: Filed): ListedServer {
  const [namespace = ''] = upstream.key.split('/')
  const sharedWith = [...new Set(entry.namespaces)].filter((other) => other !== namespace)
  return { upstream, namespace, sharedWith, isImplicit: entry.implicit }
}

function byKey(filed: readonly Filed[]): Map<string, Upstream> {
  return new Map(filed.map(({ upstream }) => [upstream.key, upstream]))
}

/** Names as used by one namespace: nested maps, so that calls build no keys. */
class Namespace {
  /** Its own MCPServers, by name. */
  readonly own = new Map<string, Upstream>()
  /** Servers of other namespaces shared with it, by name. */
  readonly shared = new Map<string, Upstream[]>()
  /** `Agent.spec.tools[].upstreamURL` by `<agent>-<name>`. */
  readonly implicit = new Map<string, Upstream>()
  /** Keys of bound servers, by agent and name. */
  readonly bindings = new Map<string, Map<string, string>>()
  /** Keys of servers of other namespaces that it may use. */
  readonly usable = new Set<string>()
}

const NOTHING_NAMED = new Namespace()

interface Tables {
  /** Names are only looked up in the caller's namespace, or among the static names. */
  readonly namespaces: ReadonlyMap<string, Namespace>
  /** MCPServers by `<ns>/<name>`. */
  readonly servers: ReadonlyMap<string, Upstream>
  /** `Agent.spec.tools[].upstreamURL` by `<ns>/<agent>-<name>`. */
  readonly implicit: ReadonlyMap<string, Upstream>
  /** `upstreams` of gateway.json by bare name. */
  readonly statics: ReadonlyMap<string, Upstream>
  /** Built-in servers, by name. */
  readonly builtins: ReadonlyMap<string, Upstream>
  /** By `<ns>/<agent>`. */
  readonly agentWeb: ReadonlyMap<string, AgentWeb>
  readonly agentBrowser: ReadonlyMap<string, AgentBrowser>
  readonly agentClients: ReadonlyMap<string, AgentClient>
  /** Servers of the file. */
  readonly filed: readonly ListedServer[]
}

class NamedUpstreams implements Registry {
  readonly #tables: Tables
  /** Whether any server is restricted to some revisions: otherwise no name needs to be resolved for it. */
  readonly #restricts: boolean
  readonly #hasImplicit: boolean
  readonly size: number
  readonly clears: boolean

  constructor(tables: Tables) {
    this.#tables = tables
    this.#restricts = [...tables.servers.values(), ...tables.implicit.values()].some(
      ({ protocolVersions }) => protocolVersions !== null,
    )
    this.#hasImplicit = tables.implicit.size > 0
    this.clears = tables.servers.values().some(({ labels }) => labels.clears)
    this.size = tables.servers.size + tables.implicit.size + tables.statics.size
  }

  get listed(): readonly ListedServer[] {
    const { filed, statics, builtins } = this.#tables
    const everywhere = [...statics.values(), ...builtins.values()]
    return [
      ...filed,
      ...everywhere.map((upstream) => ({ upstream, namespace: null, sharedWith: [], isImplicit: false })),
    ]
  }

  get auths(): readonly UpstreamAuth[] {
    const { servers, implicit } = this.#tables
    return [...servers.values(), ...implicit.values()].map(({ auth }) => auth)
  }

  protocolVersions(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): readonly string[] | null {
    if (!this.#restricts) return null
    const found = this.resolve(identity, name)
    return isDenial(found) ? null : found.protocolVersions
  }

  upstream(key: string): Upstream | null {
    const { servers, implicit, statics, builtins } = this.#tables
    return servers.get(key) ?? implicit.get(key) ?? statics.get(key) ?? builtins.get(key) ?? null
  }

  web({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>): AgentWeb | null {
    return this.#tables.agentWeb.get(`${namespace}/${agent}`) ?? null
  }

  browser({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>): AgentBrowser | null {
    return this.#tables.agentBrowser.get(`${namespace}/${agent}`) ?? null
  }

  client({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>): AgentClient | null {
    const { agentClients } = this.#tables
    return agentClients.size === 0 ? null : (agentClients.get(`${namespace}/${agent}`) ?? null)
  }

  nameOf(identity: Pick<Identity, 'namespace' | 'agent'>, name: string): string {
    const prefix = this.#hasImplicit ? `${identity.agent}-` : ''
    if (prefix === '' || !name.startsWith(prefix)) return name
    const { implicit, bindings } = this.#tables.namespaces.get(identity.namespace) ?? NOTHING_NAMED
    const published = implicit.get(name)
    if (published === undefined || bindings.get(identity.agent)?.has(name) === true) return name
    const other = this.resolve(identity, name)
    // Servers of this very name come first, also when several of them make it ambiguous.
    if (!isDenial(other) || other.code !== 'unknown_server') return name
    const short = name.slice(prefix.length)
    return this.resolve(identity, short) === published ? short : name
  }

  resolve({ namespace, agent }: Pick<Identity, 'namespace' | 'agent'>, name: string): Upstream | Denial {
    if (name.startsWith(RESERVED_PREFIX)) return this.#tables.builtins.get(name) ?? unknown(name)
    const { own, shared, implicit, bindings, usable } = this.#tables.namespaces.get(namespace) ?? NOTHING_NAMED
    const binding = bindings.get(agent)?.get(name)
    if (binding !== undefined) {
      // A binding to another namespace applies only while the server is shared; it never falls through.
      const mayUse = binding.startsWith(`${namespace}/`) || usable.has(binding)
      return (mayUse ? this.#tables.servers.get(binding) : undefined) ?? unknown(name)
    }
    const mine = own.get(name)
    if (mine !== undefined) return mine
    const candidates = shared.get(name)
    if (candidates !== undefined && candidates.length > 1) {
      return deny('ambiguous_server', `several servers named ${name} are shared with namespace ${namespace}: bind one`)
    }
    return candidates?.[0] ?? this.#tables.statics.get(name) ?? implicit.get(`${agent}-${name}`) ?? unknown(name)
  }
}

function browserOf({ browser, deniedDomains = [] }: AgentWeb): AgentBrowser {
  return { allowedDomains: browser?.allowedDomains ?? [], deniedDomains }
}

function unknown(name: string): Denial {
  return deny('unknown_server', `no server named ${name.slice(0, 128)}`)
}

function namespacesOf(filed: readonly Filed[], bindings: UpstreamsFile['bindings']): Map<string, Namespace> {
  const namespaces = new Map<string, Namespace>()
  const named = (namespace: string) => namespaces.getOrInsertComputed(namespace, () => new Namespace())
  for (const { entry, upstream } of filed) {
    const [namespace = '', name = ''] = upstream.key.split('/')
    const { own, implicit } = named(namespace)
    if (entry.implicit) implicit.set(name, upstream)
    else own.set(name, upstream)
    for (const other of new Set(entry.namespaces)) {
      named(other).usable.add(upstream.key)
      if (!entry.implicit && other !== namespace) named(other).shared.getOrInsert(name, []).push(upstream)
    }
  }
  for (const [path, key] of Object.entries(bindings)) {
    const [namespace = '', agent = '', name = ''] = path.split('/')
    named(namespace)
      .bindings.getOrInsertComputed(agent, () => new Map())
      .set(name, key)
  }
  return namespaces
}

/** Throws for entries that the decoder refuses. */
function upstreamOf(key: string, entry: ServerEntry, serveApi: ServeApi): Upstream {
  const auth = authOf(entry.auth, entry.url)
  if (typeof auth === 'string') throw new Error(`servers[${key}].auth${auth}`)
  const upstream: Upstream = {
    key,
    url: entry.url,
    stdio: entry.stdio === true,
    stdioService: entry.stdio === 'service',
    timeoutSeconds: entry.timeoutSeconds ?? null,
    caPEM: entry.caPEM ?? null,
    protocolVersions: entry.protocolVersions ?? null,
    trust: entry.trust,
    dataClass: entry.dataClass,
    jurisdiction: entry.jurisdiction ?? null,
    auth,
    published: entry.implicit ? key.slice(key.indexOf('/') + 1) : null,
    pins: entry.pins === undefined ? null : pinsOf(entry.pins),
    dlpProfile: entry.dlpProfile ?? null,
    labels: taintRules(entry.trust, entry.toolLabels, entry.dataClass),
    builtin: null,
  }
  return entry.api === undefined ? upstream : { ...upstream, builtin: serveApi(upstream, entry.api.tools) }
}

function pinsOf({ pins, ...rules }: PinsEntry): Pins {
  return { ...rules, pins: new Map(Object.entries(pins).map(([tool, digests]) => [tool, new Set(digests)])) }
}

const UNTRUSTED = taintRules('untrusted')

/** Defaults for static servers, as for an MCPServer without these members. */
const unsaid = {
  stdio: false,
  stdioService: false,
  timeoutSeconds: null,
  caPEM: null,
  protocolVersions: null,
  trust: 'untrusted',
  dataClass: 'internal',
  jurisdiction: null,
  auth: { type: 'none' },
  published: null,
  pins: null,
  dlpProfile: null,
  labels: UNTRUSTED,
  builtin: null,
} as const

function staticUpstream(name: string, url: string): Upstream {
  return { ...unsaid, key: name, url }
}

function builtinUpstream(server: BuiltinServer): Upstream {
  const { name, trust, dataClass } = server
  const labels = { of: (tool: string | null) => server.labels(tool), described: server.labels(null), clears: false }
  return { ...unsaid, key: name, url: '', trust, dataClass, labels, builtin: server }
}
