import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Manifest, MODEL_ADAPTERS } from '@plat/resources'
import { commandProblem } from '../../stdio/launch/programs.ts'
import { workingFolder } from '../../stdio/launch/specs.ts'
import { Names } from './names.ts'
import { calleesOf, routesOf, serversOf } from './reach.ts'
import type { Surroundings, Warning } from './surroundings.ts'

type Agent = Manifest<'Agent'>

/** Scopes of an agent that open nothing, and keys of its model that are missing. */
export function* agentWarnings(agent: Agent, surroundings: Surroundings): Generator<Warning> {
  const { namespace } = agent.metadata
  for (const { field, ref } of keysOf(agent)) {
    if (surroundings.hasSecret(namespace, ref)) continue
    const path = `${namespace}/${ref.name}/${ref.key}`
    yield { object: agent, field, text: `no Secret ${path}; write the key into .plat/secrets/${path}` }
  }
  yield* adapterWarning(agent)
  const { scopes = [], modelRoutes = [] } = agent.spec
  if (scopes.length === 0 && modelRoutes.length === 0) return
  const known: Readonly<Record<string, Names>> = {
    tools: new Names('server that the agent can call', serversOf(surroundings, namespace, [agent]).keys()),
    models: new Names('model route', routesOf(surroundings)),
    agents: new Names(
      'exposed agent',
      [...calleesOf(surroundings).keys()].flatMap((key) => [
        key.slice('a2a/'.length),
        key.slice(key.lastIndexOf('/') + 1),
      ]),
    ),
  }
  const shared = new Names('model route of gateway.json', Object.keys(surroundings.config.models))
  for (const [index, route] of modelRoutes.entries()) {
    const text = shared.problem(route)
    if (text !== null) yield { object: agent, field: `spec.modelRoutes[${index}]`, text }
  }
  for (const [index, scope] of scopes.entries()) {
    const colon = scope.indexOf(':')
    const names = known[scope.slice(0, Math.max(colon, 0))]
    const text = names?.problem(scope.slice(colon + 1)) ?? null
    if (text !== null) yield { object: agent, field: `spec.scopes[${index}]`, text }
  }
}

/** A provider that is named while its wire format is not: `provider` is for people, and the default format is OpenAI's. */
function* adapterWarning(agent: Agent): Generator<Warning> {
  const { provider, adapter } = agent.spec.model ?? {}
  const own = MODEL_ADAPTERS.find((one) => one === provider)
  if (own === undefined || own === 'openai' || adapter !== undefined) return
  const text = `${own} is sent requests in OpenAI's format; add adapter: ${own} for its own, or adapter: openai to keep it`
  yield { object: agent, field: 'spec.model.provider', text }
}

function keysOf({ spec: { model } }: Agent) {
  if (model?.endpoint === undefined) return []
  const named = [model, ...(model.fallbacks ?? [])]
  return named.flatMap(({ apiKeySecretRef: ref }, at) => {
    const field = at === 0 ? 'spec.model.apiKeySecretRef' : `spec.model.fallbacks[${at - 1}].apiKeySecretRef`
    return ref === undefined ? [] : [{ field, ref }]
  })
}

export function modelKeyFiles(agents: readonly Agent[], secretsDir: string): readonly string[] {
  return agents.flatMap((agent) =>
    keysOf(agent).map(({ ref }) => join(secretsDir, agent.metadata.namespace, ref.name, ref.key)),
  )
}

/** Programs and Secrets that a server of `plat up` lacks, and labels of tools that a server does not have. */
export function* serverWarnings(server: Manifest<'MCPServer'>, surroundings: Surroundings): Generator<Warning> {
  const { tools } = surroundings
  if (server.spec.openapi !== undefined) yield* apiWarnings(server, surroundings)
  if (server.spec.stdio !== undefined) yield* stdioWarnings(server, server.spec.stdio, surroundings)
  const known = tools.get(`${server.metadata.namespace}/${server.metadata.name}`)
  if (known === undefined) return
  const names = new Names('known tool of this server', known)
  for (const tool of Object.keys(server.spec.toolLabels ?? {})) {
    const text = names.problem(tool)
    if (text !== null) yield { object: server, field: `spec.toolLabels[${tool}]`, text }
  }
}

/** Allowed operations that cannot be tools, and rules that match none. */
function* apiWarnings(server: Manifest<'MCPServer'>, { declared }: Surroundings): Generator<Warning> {
  const result = declared.apis?.get(`${server.metadata.namespace}/${server.metadata.name}`)
  if (result === undefined || !('tools' in result)) return
  for (const index of result.unmatched) {
    const text = 'matches no operation of the document; without methods a rule matches GET only'
    yield { object: server, field: `spec.openapi.allow[${index}]`, text }
  }
  for (const operation of result.skipped.slice(0, LISTED_OPERATIONS_MAX))
    yield { object: server, field: 'spec.openapi', text: `${operation}: it is not a tool` }
  if (result.skipped.length > LISTED_OPERATIONS_MAX)
    yield { object: server, field: 'spec.openapi', text: `${result.skipped.length} operations are not tools` }
}

/** Operations that are named one by one. */
const LISTED_OPERATIONS_MAX = 20

type Stdio = NonNullable<Manifest<'MCPServer'>['spec']['stdio']>

function* stdioWarnings(server: Manifest<'MCPServer'>, stdio: Stdio, surroundings: Surroundings): Generator<Warning> {
  const { dir, env } = surroundings
  const { namespace } = server.metadata
  const folder = workingFolder({ dir }, stdio)
  if (!existsSync(folder))
    yield { object: server, field: 'spec.stdio.cwd', text: `${folder} does not exist: the server cannot be started` }
  const problem = commandProblem(stdio.command, folder, env.PATH ?? '')
  if (problem !== null) yield { object: server, field: 'spec.stdio.command', text: problem }
  for (const [index, { valueFrom }] of (stdio.env ?? []).entries()) {
    const ref = valueFrom?.secretKeyRef
    if (ref === undefined || surroundings.hasSecret(namespace, ref)) continue
    const path = `${namespace}/${ref.name}/${ref.key}`
    const text = `no Secret ${path}: the server cannot be started; write the value into .plat/secrets/${path}`
    yield { object: server, field: `spec.stdio.env[${index}].valueFrom.secretKeyRef`, text }
  }
}

/** The files on which warnings about servers of `plat up` depend. */
export function stdioFiles(
  servers: readonly Manifest<'MCPServer'>[],
  { dir, secrets }: { readonly dir: string; readonly secrets: string },
): readonly string[] {
  return servers.flatMap(({ metadata, spec: { stdio } }) => {
    if (stdio === undefined) return []
    const folder = workingFolder({ dir }, stdio)
    const refs = (stdio.env ?? []).flatMap(({ valueFrom }) => (valueFrom ? [valueFrom.secretKeyRef] : []))
    const files = refs.map(({ name, key }) => join(secrets, metadata.namespace, name, key))
    return [folder, resolve(folder, stdio.command), ...files]
  })
}
