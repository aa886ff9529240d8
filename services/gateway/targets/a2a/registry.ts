import { glob } from '@plat/core'
import type { AgentEntry, AgentsFile } from '@plat/resources/rendered'
import type { Identity } from '../../call/index.ts'

/** What stands before an agent's `<ns>/<agent>` in paths, policies and records. */
const PREFIX = 'a2a/'

/** Who a caller is, as far as agents decide by it. */
type Caller = Pick<Identity, 'namespace' | 'agent'>

/** One agent that others may call. */
export interface ExposedAgent {
  readonly namespace: string
  readonly name: string
  /** As policies match it and records name it: `a2a/<ns>/<agent>`. */
  readonly server: string
  readonly endpoint: string
  /** Wait for response heads; null: the gateway's default. */
  readonly timeoutSeconds: number | null
  readonly trust: 'trusted' | 'untrusted'
  /** Takes `SendStreamingMessage`. */
  readonly streaming: boolean
  /** Where its sessions run; null when that is not known. */
  readonly jurisdiction: string | null
  readonly description: string
  readonly version: string
  readonly skills: AgentEntry['skills']
  /** Whether it may be asked for a skill: any where it lists none. */
  offers(skill: string): boolean
  /** Whether its `allowedCallers` name the caller. */
  admits(caller: Caller): boolean
}

/** Exposed agents by `a2a/<ns>/<agent>`. */
export class Agents {
  readonly #agents: ReadonlyMap<string, ExposedAgent>

  constructor(agents: readonly ExposedAgent[]) {
    this.#agents = new Map(agents.map((agent) => [agent.server, agent]))
  }

  /** Feeds `plat_gateway_a2a_routes`. */
  get size(): number {
    return this.#agents.size
  }

  agent(server: string): ExposedAgent | null {
    return this.#agents.get(server) ?? null
  }
}

/** The agents of one routes file; null: there is none. */
export function buildAgents(file: AgentsFile | null): Agents {
  return new Agents(Object.entries(file?.agents ?? {}).map(([key, entry]) => exposed(key, entry)))
}

/** The two names in `a2a/<ns>/<agent>`. */
export function namesIn(server: string): readonly [namespace: string, name: string] {
  const [namespace = '', name = ''] = server.slice(PREFIX.length).split('/')
  return [namespace, name]
}

function exposed(key: string, entry: AgentEntry): ExposedAgent {
  // In one piece: each call looks it up and writes it down.
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
    streaming: entry.streaming,
    jurisdiction: entry.jurisdiction ?? null,
    description: entry.description ?? '',
    version: entry.version,
    skills: entry.skills,
    offers: (skill) => skills.size === 0 || skills.has(skill),
    admits,
  }
}

/** docs/spec/crds.md, `allowedCallers`: a name is one of the agent's own namespace, and a glob never reaches over the slash. */
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
