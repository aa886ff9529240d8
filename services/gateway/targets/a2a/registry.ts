import { glob } from '@plat/core'
import type { AgentEntry, AgentsFile } from '@plat/resources/rendered'
import type { Identity } from '../../call/index.ts'

/** Prefix of `<ns>/<agent>` in paths, policies and records. */
const PREFIX = 'a2a/'

/** The caller's members that agents check. */
type Caller = Pick<Identity, 'namespace' | 'agent'>

/** An agent that others may call. */
export interface ExposedAgent {
  readonly namespace: string
  readonly name: string
  /** Name in policies and records: `a2a/<ns>/<agent>`. */
  readonly server: string
  readonly endpoint: string
  /** Timeout of response headers; null for the gateway's default. */
  readonly timeoutSeconds: number | null
  readonly trust: 'trusted' | 'untrusted'
  /** Version of A2A that it speaks. */
  readonly protocolVersion: '1.0' | '0.3'
  /** Supports `SendStreamingMessage`. */
  readonly streaming: boolean
  /** Jurisdiction of its sessions; null if unknown. */
  readonly jurisdiction: string | null
  readonly description: string
  readonly version: string
  readonly skills: AgentEntry['skills']
  /** Returns whether it has the skill; an agent that lists none has any. */
  offers(skill: string): boolean
  /** Returns whether `allowedCallers` admits the caller. */
  admits(caller: Caller): boolean
}

/** Exposed agents, by `a2a/<ns>/<agent>`. */
export class Agents {
  readonly #agents: ReadonlyMap<string, ExposedAgent>

  constructor(agents: readonly ExposedAgent[]) {
    this.#agents = new Map(agents.map((agent) => [agent.server, agent]))
  }

  /** Value of `plat_gateway_a2a_routes`. */
  get size(): number {
    return this.#agents.size
  }

  get listed(): readonly ExposedAgent[] {
    return [...this.#agents.values()]
  }

  agent(server: string): ExposedAgent | null {
    return this.#agents.get(server) ?? null
  }
}

/** Creates the agents of a routes file; null for none. */
export function buildAgents(file: AgentsFile | null): Agents {
  return new Agents(Object.entries(file?.agents ?? {}).map(([key, entry]) => exposed(key, entry)))
}

/** Returns the two names in `a2a/<ns>/<agent>`. */
export function namesIn(server: string): readonly [namespace: string, name: string] {
  const [namespace = '', name = ''] = server.slice(PREFIX.length).split('/')
  return [namespace, name]
}

function exposed(key: string, entry: AgentEntry): ExposedAgent {
  // One flat string: each call looks it up and records it.
  const server = [PREFIX, key].join('')
  const [namespace, name] = namesIn(server)
  const skills = new Set(entry.skills.map(({ id }) => id))
  const admits = callersOf(namespace, entry.allowedCallers)
  return {
    namespace,
    name,
    server,
    endpoint: entry.endpoint,
    timeoutSeconds: entry.timeoutSeconds || null,
    trust: entry.trust,
    protocolVersion: entry.protocolVersion ?? '1.0',
    streaming: entry.streaming,
    jurisdiction: entry.jurisdiction ?? null,
    description: entry.description ?? '',
    version: entry.version,
    skills: entry.skills,
    offers: (skill) => skills.size === 0 || skills.has(skill),
    admits,
  }
}

/** docs/spec/crds.md, `allowedCallers`: a bare name is one of the agent's own namespace, and globs never match a slash. */
function callersOf(own: string, callers: readonly string[]): ExposedAgent['admits'] {
  if (callers.length === 0) return ({ namespace }) => namespace === own
  const allowed = callers.map((caller) => {
    const slash = caller.indexOf('/')
    return slash === -1
      ? { namespace: (text: string) => text === own, agent: glob(caller) }
      : { namespace: glob(caller.slice(0, slash)), agent: glob(caller.slice(slash + 1)) }
  })
  return (caller) => allowed.some(({ namespace, agent }) => namespace(caller.namespace) && agent(caller.agent))
}
