import { type DomainSet, domainSet } from '@plat/resources/domains'
import type { Caller, Identity, Snapshot } from '../../call/index.ts'

/** Allowed and denied domains; absent or empty lists do not apply. */
export interface Domains {
  readonly allowedDomains?: readonly string[]
  readonly deniedDomains?: readonly string[]
}

export interface GateConfig extends Required<Domains> {
  readonly namespaces: Readonly<Record<string, Domains>>
  readonly defaultAllow: boolean
  readonly allowedPorts: readonly number[]
  readonly allowIPLiterals: boolean
}

/** Returns `Agent.spec.web` of a caller's agent, or null. The object is identical as long as its content is. */
export type AgentDomains = (snapshot: Snapshot, identity: Pick<Identity, 'namespace' | 'agent'>) => Domains | null

/** Paths of the lists of one level, for messages. */
interface ListPaths {
  readonly allowedAt: string
  readonly deniedAt: string
}

interface Level extends ListPaths {
  readonly allowed: DomainSet
  readonly denied: DomainSet
}

const OF_AGENT = placesAt('Agent.spec.web')

/**
 * Decides which pages a caller may read (docs/spec/gateway.md, `web`). There are three levels: gateway, namespace, agent. A denial of any level
 * applies; each level with allowed domains must list the domain; if none has any, `defaultAllow` decides.
 */
export class Gates {
  readonly #config: GateConfig
  readonly #agentDomains: AgentDomains
  readonly #agentAt: ListPaths
  readonly #gateway: Level
  readonly #namespaces: ReadonlyMap<string, Level>
  readonly #agents = new WeakMap<Domains, Level>()
  readonly #ports: ReadonlySet<number>

  constructor(config: GateConfig, agentDomains: AgentDomains, agentAt: ListPaths = OF_AGENT) {
    this.#config = config
    this.#agentDomains = agentDomains
    this.#agentAt = agentAt
    this.#gateway = levelOf(placesAt('web'), config)
    const named = Object.entries(config.namespaces)
    this.#namespaces = new Map(named.map(([name, own]) => [name, levelOf(placesAt(`web.namespaces.${name}`), own)]))
    this.#ports = new Set(config.allowedPorts)
  }

  of({ snapshot, identity }: Caller): DomainFilter {
    const own = this.#agentDomains(snapshot, identity)
    const namespace = this.#namespaces.get(identity.namespace) ?? null
    const agent = own === null ? null : this.#agentLevel(own)
    const levels = [this.#gateway, namespace, agent].filter((level) => level !== null)
    return new DomainFilter({ ...this.#config, ports: this.#ports, levels })
  }

  #agentLevel(own: Domains): Level {
    const known = this.#agents.get(own)
    if (known !== undefined) return known
    const level = levelOf(this.#agentAt, own)
    this.#agents.set(own, level)
    return level
  }
}

function placesAt(at: string): ListPaths {
  return { allowedAt: `${at}.allowedDomains`, deniedAt: `${at}.deniedDomains` }
}

function levelOf(places: ListPaths, { allowedDomains = [], deniedDomains = [] }: Domains): Level {
  return { ...places, allowed: domainSet(allowedDomains), denied: domainSet(deniedDomains) }
}

interface GateParts extends Pick<GateConfig, 'defaultAllow' | 'allowIPLiterals'> {
  readonly ports: ReadonlySet<number>
  readonly levels: readonly Level[]
}

/** Filter of one caller. */
export class DomainFilter {
  readonly #parts: GateParts

  constructor(parts: GateParts) {
    this.#parts = parts
  }

  /** Whether every page is denied. */
  get isShut(): boolean {
    const { levels, defaultAllow } = this.#parts
    return !defaultAllow && levels.every(({ allowed }) => allowed.isEmpty)
  }

  /** Returns why a page is denied, without any part of its URL, or null. */
  fault(url: URL): string | null {
    const { ports, allowIPLiterals } = this.#parts
    const { protocol, username, password, hostname, port } = url
    if (protocol !== 'http:' && protocol !== 'https:') return 'only http and https can be read'
    if (username !== '' || password !== '') return 'it holds credentials'
    const isKnownPort = ports.has(port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port))
    if (!isKnownPort) return 'web.allowedPorts does not name its port'
    if (!allowIPLiterals && isLiteral(hostname))
      return 'it names an IP address, which web.allowIPLiterals does not allow'
    return this.domainFault(url)
  }

  /** Checks the domain only. */
  domainFault({ hostname }: URL): string | null {
    const { levels, defaultAllow } = this.#parts
    for (const { deniedAt, denied } of levels) if (denied.has(hostname)) return `${deniedAt} names its domain`
    const restricting = levels.filter(({ allowed }) => !allowed.isEmpty)
    if (restricting.length === 0 && !defaultAllow) return 'no list of allowed domains names its domain'
    for (const { allowedAt, allowed } of restricting) {
      if (!allowed.has(hostname)) return `${allowedAt} does not name its domain`
    }
    return null
  }
}

/** The URL parser normalizes every IPv4 address to four numbers; no other host ends in a number. */
function isLiteral(hostname: string): boolean {
  return hostname.startsWith('[') || /(?:^|\.)\d+\.?$/.test(hostname)
}
