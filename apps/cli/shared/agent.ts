import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closest, isObject, parseDuration } from '@plat/core'
import { API_VERSION, grantsOf, type Manifest, parseResource, readTree, tierOfAgent } from '@plat/resources'
import { AdminRefusalError, admin } from './admin-api.ts'
import type { FoundGateway } from './gateway.ts'
import type { HomeEnv } from './home.ts'
import { CommandError, plain } from './output.ts'

/** Grants of a session, from the Agent resource (docs/spec/crds.md). */
export interface AgentGrant {
  readonly namespace: string
  readonly name: string
  readonly tier: string
  readonly scopes: readonly string[]
  /** Names by which the agent calls its MCP servers. */
  readonly tools: readonly string[]
  /** 0 leaves the lifetime to the broker. */
  readonly maxTTLSeconds: number
}

/** Removes the `agent:` or `session:` with which revocations and legal holds name them: every command accepts both forms. */
export function withoutScope(reference: string, scope: 'agent' | 'session'): string {
  const prefix = `${scope}:`
  return reference.startsWith(prefix) ? reference.slice(prefix.length) : reference
}

/** Which caller records are about, as flags of a command have it. */
export interface CallerFlags {
  /** `assistant` or `default/assistant`, with or without `agent:`. */
  readonly agent?: string | undefined
  /** `run-1`, or `default/assistant/run-1` as `plat sessions` prints it, with or without `session:`. */
  readonly session?: string | undefined
  readonly namespace?: string | undefined
}

/**
 * Returns the members of a record that flags name: a session or an agent may be given with what it belongs to.
 * @throws CommandError when two flags name different agents or namespaces
 */
export function callerMembers({ agent, session, namespace }: CallerFlags): CallerFlags {
  const id = session === undefined ? [] : partsOf(withoutScope(session, 'session'), 3)
  const name = agent === undefined ? [] : partsOf(withoutScope(agent, 'agent'), 2)
  const one = (flag: string, ...given: readonly (string | undefined)[]) => {
    const [first, ...others] = given.filter((value) => value !== undefined && value !== '')
    const other = others.find((value) => value !== first)
    if (other === undefined) return first
    throw new CommandError(`${flag}: the flags name both ${plain(first ?? '')} and ${plain(other)}; give one`, 2)
  }
  return {
    session: id.at(-1),
    agent: one('agent', name.at(-1), id.at(-2)),
    namespace: one('namespace', namespace, name.at(-2), id.at(-3)),
  }
}

/** Splits a name at its slashes if it has exactly so many parts; else it is one name. */
function partsOf(text: string, count: number): readonly string[] {
  const parts = text.split('/')
  return parts.length === count ? parts : [text]
}

/**
 * Reads an agent of `<dir>/resources`.
 * @throws CommandError that names the file to write.
 */
export async function readAgent(dir: string, reference: string): Promise<AgentGrant> {
  const { namespace, name } = agentNamed(reference)
  const path = join(dir, 'resources', 'agents', namespace, `${name}.yaml`)
  const text = await readFile(path, 'utf8').catch(() => '')
  const own = parseResource('Agent', text)
  const isNamed = own.object?.metadata.namespace === namespace && own.object.metadata.name === name
  return grantOf(isNamed ? own.object : await findAgent(dir, { namespace, name, path }))
}

/**
 * Reads an agent of the resource API of a gateway.
 * @throws CommandError if it does not exist, or the gateway serves no resources
 */
export async function fetchAgent(env: HomeEnv, reference: string): Promise<AgentGrant> {
  const { namespace, name } = agentNamed(reference)
  const at = `/apis/${API_VERSION}/namespaces/${encodeURIComponent(namespace)}/agents/${encodeURIComponent(name)}`
  const answer = await admin(env, 'GET', at).catch((error: unknown) => {
    if (!(error instanceof AdminRefusalError)) throw error
    const why = plain(error.message)
    throw new CommandError(
      `agent ${namespace}/${name} cannot be read from the gateway (${why}); name the directory with -dir`,
    )
  })
  const spec = isObject(answer) ? answer.spec : undefined
  const text = JSON.stringify({ apiVersion: API_VERSION, kind: 'Agent', metadata: { name, namespace }, spec })
  const { object, problems } = parseResource('Agent', text)
  if (object === null) throw new CommandError(`the gateway has another kind of agent: ${plain(problems.join('; '))}`)
  return grantOf(object)
}

/** Returns why no agent of this name is found at a gateway, with the name that may have been meant; null: it exists. */
export async function missingAgent({ home, env }: FoundGateway, reference: string): Promise<string | null> {
  try {
    await (home === null ? fetchAgent(env, reference) : readAgent(home.dir, reference))
    return null
  } catch (error) {
    if (error instanceof CommandError) return error.message
    throw error
  }
}

function grantOf(agent: Manifest<'Agent'>): AgentGrant {
  const { namespace, name } = agent.metadata
  const { scopes, tools } = grantsOf({ namespace, name }, agent.spec)
  return {
    namespace,
    name,
    tier: tierOfAgent(agent.spec),
    scopes,
    tools,
    maxTTLSeconds: Math.floor((parseDuration(agent.spec.maxSessionTTL ?? '0s') ?? 0) / 1000),
  }
}

interface Wanted {
  readonly namespace: string
  readonly name: string
  readonly path: string
}

/** An agent that is declared among other documents. */
async function findAgent(dir: string, { namespace, name, path }: Wanted): Promise<Manifest<'Agent'>> {
  const { objects, problems } = await readTree(join(dir, 'resources'))
  const agents = objects.map(({ object }) => object).filter((object) => isAgent(object))
  const found = agents.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
  if (found !== undefined) return found
  const file = `${join('agents', namespace, name)}.yaml`
  const faults = problems.filter((line) => line.startsWith(`${file}:`))
  if (faults.length > 0) throw new CommandError(faults.map((line) => `resources/${line}`).join('; '))
  const known = agents.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
  throw new CommandError(`no agent ${namespace}/${name}: ${hint(`${namespace}/${name}`, known, path)}`)
}

function isAgent(object: Manifest): object is Manifest<'Agent'> {
  return object.kind === 'Agent'
}

/** The agent that may have been meant, the existing agents, or the file to write. */
function hint(wanted: string, known: readonly string[], path: string): string {
  const meant = closest(wanted, known)
  if (meant !== null) return `did you mean ${meant}?`
  return known.length === 0 ? `write ${path}` : `${path} does not exist; there is ${known.join(', ')}`
}

/** Reads `<agent>` or `<namespace>/<agent>`, with or without `agent:`. */
function agentNamed(reference: string): { readonly namespace: string; readonly name: string } {
  const text = withoutScope(reference, 'agent')
  const slash = text.indexOf('/')
  return slash === -1
    ? { namespace: 'default', name: text }
    : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
