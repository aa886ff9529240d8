import { reasonOf } from '@plat/core'
import { compileExpression, type Manifest } from '@plat/resources'
import { isDomain } from '@plat/resources/domains'
import { placeContradictions } from '@plat/resources/regions'
import { isWrittenHeader, lentTokenFault, WHEN_VARIABLES } from '@plat/resources/rendered'
import { type Declared, endpointPlace, keyOf, objectKeyOf } from './declared.ts'
import { pinFaults } from './pins.ts'
import { OVER_SHARE } from './size/shares.ts'

/**
 * A field that this version cannot enforce. Each function returns field paths (below `spec`) with the reason; an empty list means that
 * the whole resource is enforced. Fields that only configure a sandbox (image, profile, command, env, resources, workspace,
 * codeInterpreter, idleTimeout) are not checked here: their problems are reported by its sessions.
 */
export interface Fault {
  readonly path: string
  readonly why: string
}

const NOT_BUILT = 'not built yet in this version'
const EMPTY = 'must not be empty'

/** The members of a list that are empty texts: a gateway would refuse the whole file for one of them. */
function emptyMembers(path: string, list: readonly string[] = []): Fault[] {
  return list.flatMap((text, index) => (text === '' ? [{ path: `${path}[${index}]`, why: EMPTY }] : []))
}

const notBuilt = (path: string): Fault => ({ path, why: NOT_BUILT })

/** One line: `ToolPolicy default/x rules[2].action: not built yet in this version`. */
export function faultLine(object: Manifest, fault: Fault): string {
  // A message may quote half of a character; no reader accepts that.
  return `${object.kind} ${keyOf(object)} ${fault.path}: ${fault.why}`.toWellFormed()
}

/** Whether an object is left out because a file of all namespaces would otherwise be too large. */
export function shareFaults(object: Manifest, { oversized }: Pick<Declared, 'oversized'>): Fault[] {
  const file = oversized?.get(objectKeyOf(object))
  return file === undefined ? [] : [{ path: 'metadata.name', why: `${OVER_SHARE} in ${file}` }]
}

/** Runs the checks of one object. One that fails itself refuses the object, and keeps no other from being rendered. */
export function checked(check: () => Fault[]): Fault[] {
  try {
    return check()
  } catch (error) {
    return [{ path: 'spec', why: `cannot be checked: ${reasonOf(error)}` }]
  }
}

type AgentParts = Pick<Declared, 'currency' | 'home' | 'oversized'>

/** `home`: null where AgentSessions are not made into sandboxes. */
export function agentFaults(agent: Manifest<'Agent'>, parts: AgentParts): Fault[] {
  return checked(() => faultsOfAgent(agent, parts))
}

function faultsOfAgent(agent: Manifest<'Agent'>, { currency, home, oversized }: AgentParts): Fault[] {
  const { spec } = agent
  const paths: string[] = []
  if (home === null && (spec.maxConcurrentSessions ?? 0) > 0) paths.push('maxConcurrentSessions')
  if (home === null && spec.browser?.liveView === true) paths.push('browser.liveView')
  const model = modelFaults(spec.model ?? {}).map(({ path, why }) => ({ path: `model.${path}`, why }))
  const budget = budgetFaults(spec.budget ?? {}, currency).map(({ path, why }) => ({ path: `budget.${path}`, why }))
  const onCluster = paths.map((path) => ({ path, why: 'sandboxes need a cluster' }))
  const share = shareFaults(agent, oversized === undefined ? {} : { oversized })
  return [
    ...share,
    ...onCluster,
    ...domainFaults(spec),
    ...keyFaults(spec),
    ...model,
    ...budget,
    ...exposureFaults(spec.a2a),
  ]
}

/** The key of a model is the gateway's alone (docs/spec/crds.md, `apiKeySecretRef`): no variable of the sandbox may hold it. */
function keyFaults({ env = [], model }: Manifest<'Agent'>['spec']): Fault[] {
  const keys = [model, ...(model?.fallbacks ?? [])].flatMap((endpoint) => endpoint?.apiKeySecretRef ?? [])
  return env.flatMap(({ valueFrom }, index) => {
    const ref = valueFrom?.secretKeyRef
    if (ref === undefined || !keys.some(({ name, key }) => name === ref.name && key === ref.key)) return []
    const why = 'names the key of the model, which never reaches a sandbox'
    return [{ path: `env[${index}].valueFrom.secretKeyRef`, why }]
  })
}

/** A list that means something else than it says would let agents read what they must not. */
function domainFaults({ web, browser }: Manifest<'Agent'>['spec']): Fault[] {
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
function exposureFaults(a2a: Manifest<'Agent'>['spec']['a2a']): Fault[] {
  if (a2a?.expose !== true || a2a.endpoint === undefined) return []
  const strange = (a2a.allowedCallers ?? []).flatMap((caller, index) =>
    CALLER.test(caller)
      ? []
      : [{ path: `a2a.allowedCallers[${index}]`, why: 'must read <name> or <namespace>/<name>' }],
  )
  const version = a2a.version === '' ? [{ path: 'a2a.version', why: EMPTY }] : []
  return [...[urlFault('a2a.endpoint', a2a.endpoint)].filter((fault) => fault !== null), ...strange, ...version]
}

type Caps = Readonly<Record<string, unknown>> & { readonly currency?: string }

/** Problems of the amounts of a budget of any kind: `currency`, and every member that limits money. */
export function budgetFaults(budget: Caps, currency: string): Fault[] {
  const faults: Fault[] = []
  if (budget.currency !== undefined && budget.currency !== currency) {
    const why = `${budget.currency}, but the gateway counts in ${currency}: nothing is converted; write amounts in ${currency} or set budgetCurrency`
    faults.push({ path: 'currency', why })
  }
  for (const [path, value] of Object.entries(budget)) {
    if (path.startsWith('per') && String(value).startsWith('-')) faults.push({ path, why: 'must not be negative' })
  }
  return faults
}

/** Problems of the selector of a BudgetPolicy. */
export function selectorFaults({ selector = {} }: Manifest<'BudgetPolicy'>['spec']): Fault[] {
  const { agents, users, groups } = selector
  return [
    ...emptyMembers('selector.agents', agents),
    ...emptyMembers('selector.users', users),
    ...emptyMembers('selector.groups', groups),
  ]
}

type Model = NonNullable<Manifest<'Agent'>['spec']['model']>

/** Without an endpoint there is no route, and nothing that would have to be enforced. */
function modelFaults(model: Model): Fault[] {
  const faults = endpointFaults(model)
  if (model.provider === 'ctxengine') faults.push(notBuilt('provider'))
  for (const [alias, name] of Object.entries(model.aliases ?? {}))
    if (name === '') faults.push({ path: `aliases[${alias}]`, why: EMPTY })
  for (const [index, fallback] of (model.fallbacks ?? []).entries()) {
    const name = fallback.name ?? model.name
    for (const { path, why } of endpointFaults({ ...fallback, ...(name !== undefined && { name }) }))
      faults.push({ path: `fallbacks[${index}].${path}`, why })
  }
  return faults
}

/** Endpoint members of a model and each of its fallbacks. */
function endpointFaults(model: Omit<NonNullable<Model['fallbacks']>[number], 'endpoint'> & Pick<Model, 'endpoint'>) {
  const faults: Fault[] = []
  const { endpoint, apiKeySecretRef: secret } = model
  faults.push(...adapterFaults(model))
  for (const [path, why] of placeContradictions(endpointPlace(model), model.name ?? null)) faults.push({ path, why })
  if (endpoint !== undefined) faults.push(...[urlFault('endpoint', endpoint)].filter((fault) => fault !== null))
  if (secret !== undefined) return [...faults, ...fileNames('apiKeySecretRef', secret)]
  const { adapter: provider, adapterMode: mode } = model
  const lent = lentTokenFault({ ...(provider && { provider }), ...(mode && { mode }) }, endpoint ?? '')
  if (endpoint !== undefined && lent !== null) faults.push({ path: 'endpoint', why: lent })
  return faults
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
function adapterFaults(model: Pick<Model, 'adapter' | 'adapterMode' | 'apiVersion' | 'region' | 'project'>): Fault[] {
  const { adapter = 'openai', adapterMode } = model
  const modes = ADAPTER_MODES[adapter] ?? []
  if (adapterMode !== undefined && !modes.includes(adapterMode))
    return [{ path: 'adapterMode', why: `is no mode of the adapter ${adapter}` }]
  const variant = [adapter, `${adapter}/${adapterMode ?? modes[0]}`]
  const isOneOf = (some: readonly string[]) => some.some((one) => variant.includes(one))
  const faults: Fault[] = []
  for (const key of ['apiVersion', 'region', 'project'] as const) {
    if (model[key] !== undefined && !isOneOf(ADAPTERS_WITH[key]))
      faults.push({ path: key, why: `has no meaning for the adapter ${adapter}` })
    if (model[key] === undefined && key !== 'apiVersion' && isOneOf(NEEDS_PLACE))
      faults.push({ path: key, why: `is required with adapter ${adapter}` })
  }
  return faults
}

/** On files a Secret is a folder and each of its keys a file in it. */
const FILE_NAME = /^(?!\.+$)[-._a-zA-Z0-9]+$/

/** Names that begin so belong to the servers that the gateway has built in. */
export const RESERVED_PREFIX = 'plat-'

export function serverFaults(server: Manifest<'MCPServer'>): Fault[] {
  return checked(() => faultsOfServer(server))
}

function faultsOfServer({ metadata, spec }: Manifest<'MCPServer'>): Fault[] {
  const faults: Fault[] = []
  if (metadata.name.startsWith(RESERVED_PREFIX)) faults.push(reservedName('metadata.name'))
  const url = urlFault('url', spec.url)
  if (url !== null) faults.push(url)
  if (spec.auth !== undefined) faults.push(...authFaults(spec.auth, spec.url))
  if (spec.caBundleRef !== undefined) faults.push(...fileNames('caBundleRef', spec.caBundleRef))
  if (spec.toolPins !== undefined) faults.push(...pinFaults('toolPins', spec.toolPins))
  faults.push(...labelFaults(spec.toolLabels ?? {}))
  for (const [index, namespace] of (spec.allowedNamespaces ?? []).entries()) {
    if (spec.shared === true && !NAMESPACE.test(namespace))
      faults.push({ path: `allowedNamespaces[${index}]`, why: 'must be the name of a namespace' })
  }
  return faults
}

const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/** Tokens carry labels separated by spaces; and what every label stands for is no label itself. */
const LABEL = /^(?!\*$)[\x21-\x7e]+$/

function labelFaults(toolLabels: NonNullable<Manifest<'MCPServer'>['spec']['toolLabels']>): Fault[] {
  const faults: Fault[] = []
  for (const [tool, { taints = [], clearTaints = [], sinks = [] }] of Object.entries(toolLabels)) {
    const told = { taints, clearTaints: clearTaints.filter((label) => label !== '*'), sinks }
    for (const [part, labels] of Object.entries(told)) {
      const why = 'a label is printable ASCII without spaces, and * stands for all only in clearTaints'
      if (!labels.every((label) => LABEL.test(label))) faults.push({ path: `toolLabels[${tool}].${part}`, why })
    }
  }
  return faults
}

type Auth = NonNullable<Manifest<'MCPServer'>['spec']['auth']>

/** Problems of `auth` that the schema cannot express and the gateway would refuse. */
function authFaults({ type, secretRef, headerName, oauth, mtls }: Auth, url: string): Fault[] {
  const faults: Fault[] = []
  if (headerName !== undefined && isWrittenHeader(headerName)) {
    faults.push({ path: 'auth.headerName', why: 'the gateway writes this header itself' })
  }
  if (type === 'mtls' && !url.startsWith('https://')) {
    faults.push({ path: 'auth.type', why: 'mtls needs a url that begins with https://' })
  }
  if (secretRef !== undefined) faults.push(...fileNames('auth.secretRef', secretRef))
  if (mtls !== undefined) faults.push(...fileNames('auth.mtls.certSecretRef', mtls.certSecretRef))
  if (oauth === undefined) return faults
  const tokenURL = urlFault('auth.oauth.tokenURL', oauth.tokenURL)
  return [
    ...faults,
    ...(tokenURL === null ? [] : [tokenURL]),
    ...fileNames('auth.oauth.clientIdRef', oauth.clientIdRef),
    ...fileNames('auth.oauth.clientSecretRef', oauth.clientSecretRef),
  ]
}

function fileNames(path: string, ref: { readonly name: string; readonly key?: string }): Fault[] {
  const usable = FILE_NAME.test(ref.name) && (ref.key === undefined || FILE_NAME.test(ref.key))
  return usable ? [] : [{ path, why: 'name and key must be usable as file names' }]
}

/** URLs that the gateway's files accept; a URL parser accepts more, such as `http:///host`. */
const HTTP_URL = /^https?:\/\/[^/@\s]+/

/** A URL that cannot be called, or one whose credentials would end in a rendered file. */
export function urlFault(path: string, text: string): Fault | null {
  const url = URL.parse(text)
  if (url !== null && url.username === '' && url.password === '' && !HTTP_URL.test(text))
    return { path, why: 'must read http(s)://<host>' }
  if (url === null) return { path, why: 'not a URL' }
  return url.username === '' && url.password === '' ? null : { path, why: 'must not hold credentials' }
}

export function reservedName(path: string): Fault {
  return { path, why: `names that begin with "${RESERVED_PREFIX}" are built in` }
}

export function policyFaults(policy: Manifest<'ToolPolicy'>): Fault[] {
  return checked(() => faultsOfPolicy(policy))
}

function faultsOfPolicy({ spec }: Manifest<'ToolPolicy'>): Fault[] {
  const faults: Fault[] = []
  for (const [server, pins] of Object.entries(spec.toolPins ?? {})) {
    faults.push(...pinFaults(`toolPins[${server}]`, pins))
  }
  for (const [index, rule] of (spec.rules ?? []).entries()) {
    for (const { path, why } of ruleFaults(rule)) faults.push({ path: `rules[${index}].${path}`, why })
  }
  return faults
}

type Rule = NonNullable<Manifest<'ToolPolicy'>['spec']['rules']>[number]

function quorumFaults(action: Rule['action'], quorum: NonNullable<Rule['quorum']>): Fault[] {
  if (action !== 'require_approval') return [{ path: 'quorum', why: 'only a rule that says require_approval has one' }]
  if (quorum.minApprovers !== 0 || quorum.userConfirmation !== undefined) return []
  return [{ path: 'quorum.minApprovers', why: '0 needs userConfirmation: somebody must agree' }]
}

function ruleFaults(rule: Rule): Fault[] {
  const faults: Fault[] = []
  for (const [key, names] of Object.entries(rule.match ?? {})) faults.push(...emptyMembers(`match.${key}`, names))
  faults.push(...emptyMembers('quorum.approverGroups', rule.quorum?.approverGroups))
  if (rule.quorum !== undefined) faults.push(...quorumFaults(rule.action, rule.quorum))
  if (rule.when === undefined) return faults
  const when = compileExpression(rule.when, WHEN_VARIABLES)
  if (typeof when === 'string') faults.push({ path: 'when', why: when })
  return faults
}
