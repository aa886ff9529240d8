import { join } from 'node:path'
import type { Manifest } from '@plat/resources'
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
  const { scopes = [] } = agent.spec
  if (scopes.length === 0) return
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
  for (const [index, scope] of scopes.entries()) {
    const colon = scope.indexOf(':')
    const names = known[scope.slice(0, Math.max(colon, 0))]
    const text = names?.problem(scope.slice(colon + 1)) ?? null
    if (text !== null) yield { object: agent, field: `spec.scopes[${index}]`, text }
  }
}

function keysOf({ spec: { model } }: Agent) {
  if (model?.endpoint === undefined) return []
  const named = [model, ...(model.fallbacks ?? [])]
  return named.flatMap(({ apiKeySecretRef: ref }, at) => {
    const field = at === 0 ? 'spec.model.apiKeySecretRef' : `spec.model.fallbacks[${at - 1}].apiKeySecretRef`
    return ref === undefined ? [] : [{ field, ref }]
  })
}

/** The files with the keys of models. */
export function modelKeyFiles(agents: readonly Agent[], secretsDir: string): readonly string[] {
  return agents.flatMap((agent) =>
    keysOf(agent).map(({ ref }) => join(secretsDir, agent.metadata.namespace, ref.name, ref.key)),
  )
}

/** Labels of tools that a server does not have. */
export function* serverWarnings(server: Manifest<'MCPServer'>, { tools }: Surroundings): Generator<Warning> {
  const known = tools.get(`${server.metadata.namespace}/${server.metadata.name}`)
  if (known === undefined) return
  const names = new Names('known tool of this server', known)
  for (const tool of Object.keys(server.spec.toolLabels ?? {})) {
    const text = names.problem(tool)
    if (text !== null) yield { object: server, field: `spec.toolLabels[${tool}]`, text }
  }
}
