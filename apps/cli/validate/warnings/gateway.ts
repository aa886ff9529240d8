import { memberPath } from '@plat/config'
import { Names } from './names.ts'
import type { Surroundings, Warning } from './surroundings.ts'

/** Static model routes of gateway.json that name agents or variables that do not exist. */
export function* gatewayWarnings({ config, declared, env }: Surroundings): Generator<Warning> {
  const all = declared.agents.map(({ metadata }) => metadata)
  const agents = new Names(
    'Agent',
    all.flatMap(({ namespace, name }) => [name, `${namespace}/${name}`]),
  )
  const namespaces = new Names(
    'namespace with Agents',
    all.map(({ namespace }) => namespace),
  )
  for (const [name, route] of Object.entries(config.models)) {
    const path = memberPath('models', name)
    for (const [key, known] of [['agents', agents] as const, ['namespaces', namespaces] as const]) {
      for (const [index, entry] of route[key].entries()) {
        const text = known.problem(entry)
        if (text !== null) yield { object: null, field: `${path}.${key}[${index}]`, text }
      }
    }
    for (const [index, { auth }] of [route, ...route.fallbacks].entries()) {
      const variable = auth?.tokenEnv ?? ''
      if (variable === '' || (env[variable] ?? '') !== '') continue
      const place = index === 0 ? path : `${path}.fallbacks[${index - 1}]`
      const text = `the variable ${variable} is not set; set it where plat up is started`
      yield { object: null, field: `${place}.auth.tokenEnv`, text }
    }
  }
}
