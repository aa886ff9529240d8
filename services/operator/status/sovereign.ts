import type { Manifest, Resource } from '@plat/resources'
import { tierOfAgent } from '@plat/resources'
import { jurisdictionOf } from '@plat/resources/regions'
import { type EndpointJurisdictions, jurisdictionOfEndpoint } from '@plat/resources/regions/endpoint'
import { residencyFault, type Sovereignty, type UpstreamPlacement } from '@plat/resources/sovereignty'
import { endpointPlace } from '../render/declared.ts'
import type { Finding } from './conditions.ts'

/** Default data class of an upstream. */
const DEFAULT_CLASS = 'internal'

/** A dependency of an object: the field that names it, and its location. */
type Relied = readonly (readonly [field: string, place: UpstreamPlacement])[]

/** Names in an Agent. */
interface Known {
  /** By `<namespace>/<name>`. */
  readonly servers: ReadonlyMap<string, Manifest<'MCPServer'>>
  /** By name. */
  readonly tiers: ReadonlyMap<string, Manifest<'TrustTier'>>
  /** `endpointJurisdictions` of the gateway. */
  readonly endpoints: EndpointJurisdictions
}

/** A server, and the token endpoint that receives its client's secret. */
export function reliedOnByServer({ spec }: Manifest<'MCPServer'>, { endpoints }: Pick<Known, 'endpoints'>): Relied {
  const url = URL.parse(spec.auth?.oauth?.tokenURL ?? '')
  const jurisdiction = url === null ? null : jurisdictionOfEndpoint(url, endpoints)
  if (jurisdiction === null) return [['', placeOf(spec)]]
  return [
    ['', placeOf(spec)],
    ['auth.oauth.tokenURL', { jurisdiction, dataClass: DEFAULT_CLASS }],
  ]
}

/** Where an agent's sessions run, the endpoints of its model, and the servers of its tools, as far as they are known. */
export function reliedOnByAgent({ metadata, spec }: Manifest<'Agent'>, known: Known): Relied {
  const { servers, tiers } = known
  const { model, tools = [] } = spec
  const relied: [string, UpstreamPlacement][] = []
  const { jurisdiction } = tiers.get(tierOfAgent(spec))?.spec ?? {}
  if (jurisdiction !== undefined) relied.push(['tier', placeOf({ jurisdiction })])
  if (model?.endpoint !== undefined) relied.push(['model', placeOfModel(model, model.name)])
  for (const [index, fallback] of (model?.fallbacks ?? []).entries()) {
    relied.push([`model.fallbacks[${index}]`, placeOfModel(fallback, fallback.name ?? model?.name)])
  }
  for (const tool of tools) {
    const { name, upstreamURL } = tool
    const server = servers.get(serverOf(metadata.namespace, tool))
    if (server !== undefined)
      for (const [field, place] of reliedOnByServer(server, known))
        relied.push([`tools[${name}]${field === '' ? '' : `.${field}`}`, place])
    else if (upstreamURL !== undefined) relied.push([`tools[${name}]`, placeOf({})])
  }
  return relied
}

/** The servers that an Agent's tools name, by `<namespace>/<name>`, whether or not there are such. */
export function toolServers({ metadata, spec: { tools = [] } }: Manifest<'Agent'>): readonly string[] {
  return tools.map((tool) => serverOf(metadata.namespace, tool))
}

type Tool = NonNullable<Manifest<'Agent'>['spec']['tools']>[number]

function serverOf(namespace: string, { name, serverRef }: Tool): string {
  return `${serverRef?.namespace ?? namespace}/${serverRef?.name ?? name}`
}

function placeOfModel(endpoint: Parameters<typeof endpointPlace>[0], model: string | undefined): UpstreamPlacement {
  return { jurisdiction: jurisdictionOf(endpointPlace(endpoint), model ?? null), dataClass: DEFAULT_CLASS }
}

function placeOf(spec: {
  readonly jurisdiction?: string
  readonly dataClass?: UpstreamPlacement['dataClass']
}): UpstreamPlacement {
  return { jurisdiction: spec.jurisdiction, dataClass: spec.dataClass ?? DEFAULT_CLASS }
}

/**
 * The condition `SovereigntyCompliant` (docs/spec/crds.md): whether everything that an object relies on complies with the SovereigntyPolicy.
 * Returns null if there is no SovereigntyPolicy and the object never had the condition.
 */
export function sovereignFinding(
  rules: Sovereignty | null,
  relied: Relied,
  before: Resource<'Agent' | 'MCPServer'>['status'],
): Finding | null {
  const type = 'SovereigntyCompliant'
  if (rules === null) {
    const isReported = before?.conditions?.some((condition) => condition.type === type) === true
    const message = 'there is no SovereigntyPolicy'
    return isReported ? { type, status: 'Unknown', reason: 'NoSovereigntyPolicy', message } : null
  }
  const problems = relied.flatMap(([field, place]) => {
    const problem = residencyFault(rules, place)
    return problem === null ? [] : [field === '' ? problem : `${field}: ${problem}`]
  })
  if (problems.length === 0) return { type, status: 'True', reason: 'Compliant', message: '' }
  return { type, status: 'False', reason: 'NotCompliant', message: problems.join('; ') }
}
