import { AGENT_REQUIRED_ON_CLUSTER, type Manifest } from '@plat/resources'
import { isDomain } from '@plat/resources/domains'
import { placeContradictions } from '@plat/resources/regions'
import { lentTokenFault } from '@plat/resources/rendered'
import { type Declared, endpointPlace } from '../render/declared.ts'
import { budgetProblems } from './budget.ts'
import { checked, EMPTY, fileNames, type Problem, shareProblems, urlProblem } from './problem.ts'

type AgentParts = Pick<Declared, 'currency' | 'home' | 'oversized'>

/** `home`: null where AgentSessions are not made into sandboxes. */
export function agentProblems(agent: Manifest<'Agent'>, parts: AgentParts): Problem[] {
  return checked(() => problemsOfAgent(agent, parts))
}

function problemsOfAgent(agent: Manifest<'Agent'>, { currency, home, oversized }: AgentParts): Problem[] {
  const { spec } = agent
  const paths: string[] = []
  if (home === null && (spec.maxConcurrentSessions ?? 0) > 0) paths.push('maxConcurrentSessions')
  if (home === null && spec.browser?.liveView === true) paths.push('browser.liveView')
  const required = AGENT_REQUIRED_ON_CLUSTER.filter((field) => home !== null && spec[field] === undefined)
  const missing = required.map((field) => ({ path: field, why: 'is required on a cluster' }))
  const model = modelProblems(spec.model ?? {}).map(({ path, why }) => ({ path: `model.${path}`, why }))
  const budget = budgetProblems(spec.budget ?? {}, currency).map(({ path, why }) => ({ path: `budget.${path}`, why }))
  const onCluster = paths.map((path) => ({ path, why: 'sandboxes need a cluster' }))
  const share = shareProblems(agent, oversized === undefined ? {} : { oversized })
  return [
    ...share,
    ...onCluster,
    ...missing,
    ...domainProblems(spec),
    ...keyProblems(spec),
    ...model,
    ...budget,
    ...exposureProblems(spec.a2a),
  ]
}

/** The key of a model is the gateway's alone (docs/spec/crds.md, `apiKeySecretRef`): no variable of the sandbox may hold it. */
function keyProblems({ env = [], model }: Manifest<'Agent'>['spec']): Problem[] {
  const keys = [model, ...(model?.fallbacks ?? [])].flatMap((endpoint) => endpoint?.apiKeySecretRef ?? [])
  return env.flatMap(({ valueFrom }, index) => {
    const ref = valueFrom?.secretKeyRef
    if (ref === undefined || !keys.some(({ name, key }) => name === ref.name && key === ref.key)) return []
    const why = 'names the key of the model, which never reaches a sandbox'
    return [{ path: `env[${index}].valueFrom.secretKeyRef`, why }]
  })
}

/** A list that means something else than it says would let agents read what they must not. */
function domainProblems({ web, browser }: Manifest<'Agent'>['spec']): Problem[] {
  const strange = (list: string, domains: readonly string[] = []) =>
    domains.flatMap((domain, index) =>
      isDomain(domain)
        ? []
        : [{ path: `${list}[${index}]`, why: 'must be a domain such as example.com or *.example.com' }],
    )
  return [
    ...strange('web.allowedDomains', web?.allowedDomains),
    ...strange('web.deniedDomains', web?.deniedDomains),
    ...strange('browser.allowedDomains', browser?.allowedDomains),
  ]
}

/** An agent's own name, or `<namespace>/<name>`; both may hold globs. */
const CALLER = /^(?=.{1,317}$)[^/\s]+(?:\/[^/\s]+)?$/

/** Problems of an exposed agent that could not be called. */
function exposureProblems(a2a: Manifest<'Agent'>['spec']['a2a']): Problem[] {
  if (a2a?.expose !== true || a2a.endpoint === undefined) return []
  const strange = (a2a.allowedCallers ?? []).flatMap((caller, index) =>
    CALLER.test(caller)
      ? []
      : [{ path: `a2a.allowedCallers[${index}]`, why: 'must read <name> or <namespace>/<name>' }],
  )
  const version = a2a.version === '' ? [{ path: 'a2a.version', why: EMPTY }] : []
  return [...[urlProblem('a2a.endpoint', a2a.endpoint)].filter((problem) => problem !== null), ...strange, ...version]
}

type Model = NonNullable<Manifest<'Agent'>['spec']['model']>

/** Without an endpoint there is no route, and nothing that would have to be enforced. */
function modelProblems(model: Model): Problem[] {
  const problems = endpointProblems(model)
  for (const [alias, name] of Object.entries(model.aliases ?? {}))
    if (name === '') problems.push({ path: `aliases[${alias}]`, why: EMPTY })
  for (const [index, fallback] of (model.fallbacks ?? []).entries()) {
    const name = fallback.name ?? model.name
    for (const { path, why } of endpointProblems({ ...fallback, ...(name !== undefined && { name }) }))
      problems.push({ path: `fallbacks[${index}].${path}`, why })
  }
  return problems
}

/** Endpoint members of a model and each of its fallbacks. */
function endpointProblems(model: Omit<NonNullable<Model['fallbacks']>[number], 'endpoint'> & Pick<Model, 'endpoint'>) {
  const problems: Problem[] = []
  const { endpoint, apiKeySecretRef: secret } = model
  problems.push(...adapterProblems(model))
  for (const [path, why] of placeContradictions(endpointPlace(model), model.name ?? null)) problems.push({ path, why })
  if (endpoint !== undefined) problems.push(...[urlProblem('endpoint', endpoint)].filter((problem) => problem !== null))
  if (secret !== undefined) return [...problems, ...fileNames('apiKeySecretRef', secret)]
  const { adapter: provider, adapterMode: mode } = model
  const lent = lentTokenFault({ ...(provider && { provider }), ...(mode && { mode }) }, endpoint ?? '')
  if (endpoint !== undefined && lent !== null) problems.push({ path: 'endpoint', why: lent })
  return problems
}

/** The modes of each adapter, the default first; none: it has no modes. */
const ADAPTER_MODES: Readonly<Record<string, readonly string[]>> = {
  openai: [],
  'azure-openai': ['v1', 'deployments'],
  anthropic: ['direct', 'vertex', 'bedrock'],
  bedrock: ['converse', 'openai'],
  vertex: ['native', 'openai'],
  gemini: [],
  'oci-genai': [],
}

/** Which adapters (`<adapter>`, or `<adapter>/<mode>`) a key has a meaning for. */
const ADAPTERS_WITH: Readonly<Record<'apiVersion' | 'region' | 'project', readonly string[]>> = {
  apiVersion: ['azure-openai', 'anthropic/direct'],
  region: ['azure-openai', 'bedrock', 'vertex', 'anthropic/vertex', 'anthropic/bedrock', 'oci-genai'],
  project: ['vertex', 'anthropic/vertex', 'oci-genai'],
}

/** Where Google Cloud runs the model, its path names both. */
const NEEDS_PLACE: readonly string[] = ['vertex', 'anthropic/vertex']

/** Problems of an endpoint for which the gateway would refuse the whole file. */
function adapterProblems(
  model: Pick<Model, 'adapter' | 'adapterMode' | 'apiVersion' | 'region' | 'project'>,
): Problem[] {
  const { adapter = 'openai', adapterMode } = model
  const modes = ADAPTER_MODES[adapter] ?? []
  if (adapterMode !== undefined && !modes.includes(adapterMode))
    return [{ path: 'adapterMode', why: `is not a mode of the adapter ${adapter}` }]
  const variant = [adapter, `${adapter}/${adapterMode ?? modes[0]}`]
  const isOneOf = (some: readonly string[]) => some.some((one) => variant.includes(one))
  const problems: Problem[] = []
  for (const key of ['apiVersion', 'region', 'project'] as const) {
    if (model[key] !== undefined && !isOneOf(ADAPTERS_WITH[key]))
      problems.push({ path: key, why: `has no meaning for the adapter ${adapter}` })
    if (model[key] === undefined && key !== 'apiVersion' && isOneOf(NEEDS_PLACE))
      problems.push({ path: key, why: `is required with adapter ${adapter}` })
  }
  return problems
}
