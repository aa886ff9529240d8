/** Jurisdiction of a model endpoint: what its region, its URL and the requested model guarantee, and what it states. */
import { covers } from '../sovereignty.ts'
import { ANYWHERE, MULTI_REGIONS, PROFILES, REGIONS } from './table.ts'

/** Determines where an endpoint processes requests; the names are those of a model route. */
export interface EndpointPlace {
  readonly provider?: string | undefined
  readonly mode?: string | undefined
  readonly upstream?: string | undefined
  readonly region?: string | undefined
  /** Empty: not stated. */
  readonly jurisdiction?: string | undefined
}

/** Where requests are processed. `isOneRegion`: a stated jurisdiction may name a part of the country. */
interface ProcessingRegion {
  readonly code: string
  readonly isOneRegion: boolean
}

const SINGLE_REGIONS: ReadonlyMap<string, string> = new Map(
  Object.values(REGIONS).flatMap((countries) =>
    Object.entries(countries).flatMap(([country, names]) =>
      names.split(/\s+/).map((name): [string, string] => [name, country]),
    ),
  ),
)

/**
 * Returns the jurisdiction in which an endpoint processes requests for `model` (null: none, or not known). What region, URL and model
 * guarantee comes first; a stated jurisdiction counts where they guarantee nothing, or for a part of the country of a single region.
 * Returns null when neither says anything, and `anywhere` when requests may be routed to any country.
 */
export function jurisdictionOf(endpoint: EndpointPlace, model: string | null): string | null {
  return jurisdictionsOf(endpoint)(model)
}

/** `jurisdictionOf` for many models: region and URL are read once. */
export function jurisdictionsOf(endpoint: EndpointPlace): (model: string | null) => string | null {
  const stated = endpoint.jurisdiction || null
  const own = ownReach(endpoint)
  const judged = (reach: ProcessingRegion | null): string | null =>
    reach === null || (stated !== null && isPartOf(stated, reach)) ? stated : reach.code
  if (isBedrock(endpoint)) return (model) => judged(reachFrom(own, model))
  const everywhere = judged(own)
  return () => everywhere
}

/** Returns contradictions in an endpoint, by key. `model`: the one that it enforces; null when callers choose. */
export function placeContradictions(
  endpoint: EndpointPlace,
  model: string | null,
): readonly (readonly [key: 'region' | 'jurisdiction', message: string])[] {
  const { region = '', jurisdiction: stated = '' } = endpoint
  const named = [regionInURL(endpoint), isBedrock(endpoint) ? regionInARN(model) : null].find(
    (one) => one !== null && region !== '' && one !== region,
  )
  if (typeof named === 'string') return [['region', `is ${region}, but the upstream or the model names ${named}`]]
  const reach = reachOf(endpoint, model)
  if (stated === '' || reach === null || covers(stated, reach.code) || isPartOf(stated, reach)) return []
  const where = reach.code === ANYWHERE ? 'may be processed anywhere' : `are processed in ${reach.code}`
  return [['jurisdiction', `is ${stated}, but by region and model requests ${where}: correct it or leave it out`]]
}

function isPartOf(stated: string, { code, isOneRegion }: ProcessingRegion): boolean {
  return isOneRegion && covers(code, stated)
}

function regionReach(region: string): ProcessingRegion | null {
  const code = SINGLE_REGIONS.get(region)
  if (code !== undefined) return { code, isOneRegion: true }
  const several = Object.hasOwn(MULTI_REGIONS, region) ? MULTI_REGIONS[region] : undefined
  return several === undefined ? null : { code: several, isOneRegion: false }
}

function reachOf(endpoint: EndpointPlace, model: string | null): ProcessingRegion | null {
  const own = ownReach(endpoint)
  return isBedrock(endpoint) ? reachFrom(own, model) : own
}

function ownReach(endpoint: EndpointPlace): ProcessingRegion | null {
  return regionReach(regionInURL(endpoint) ?? endpoint.region ?? '')
}

/** Returns the region of a model at Bedrock, called at an endpoint with its own region. */
function reachFrom(own: ProcessingRegion | null, model: string | null): ProcessingRegion | null {
  const routed = model === null ? null : modelReach(model)
  return own === null || routed === null ? (routed ?? own) : joined(own, routed)
}

/** A request may be processed in either. */
function joined(one: ProcessingRegion, other: ProcessingRegion): ProcessingRegion {
  if (one.code === other.code) return { code: one.code, isOneRegion: one.isOneRegion && other.isOneRegion }
  const wider = [one, other].find(({ code }) => covers(code, one.code) && covers(code, other.code))
  return { code: wider?.code ?? ANYWHERE, isOneRegion: false }
}

const AWS_HOST = /\.(?:amazonaws\.(?:com|com\.cn|eu)|amazoncognito\.com|api\.aws)$/

function isBedrock({ provider = 'openai', mode, upstream = '' }: EndpointPlace): boolean {
  const isByName = provider === 'bedrock' || (provider === 'anthropic' && mode === 'bedrock')
  return isByName || AWS_HOST.test(hostOf(upstream))
}

/** `arn:<partition>:<service>:<region>:<account>:<type>/<id>` */
const ARN = /^arn:[^:]*:[^:]*:([^:]*):[^:]*:([^/]+)\/(.+)$/
/** Resources that stay in the region of their ARN. */
const REGIONAL_TYPES: ReadonlySet<string> = new Set([
  'foundation-model',
  'provisioned-model',
  'custom-model',
  'custom-model-deployment',
  'imported-model',
  'endpoint',
])

function regionInARN(model: string | null): string | null {
  return ARN.exec(model ?? '')?.[1] || null
}

/** Where Bedrock may process requests for a model; null: in the region of the endpoint. */
function modelReach(model: string): ProcessingRegion | null {
  const [, region = '', type = '', id = ''] = ARN.exec(model) ?? []
  if (type === '') return profileReach(model)
  const own = regionReach(region)
  if (REGIONAL_TYPES.has(type)) return own
  // The target of an application inference profile or a prompt router is not in its name.
  const routed = type === 'inference-profile' ? profileReach(id) : { code: ANYWHERE, isOneRegion: false }
  return own === null || routed === null ? (routed ?? own) : joined(own, routed)
}

/** `<prefix>.<provider>.<model>`; a prefix that is not in the table, but looks like one, guarantees nothing. */
const PROFILE = /^([a-z]{2}(?:-[a-z]+)?|apac|global)\.[^.]+\./

function profileReach(model: string): ProcessingRegion | null {
  const prefix = PROFILE.exec(model)?.[1]
  if (prefix === undefined) return null
  return { code: (Object.hasOwn(PROFILES, prefix) && PROFILES[prefix]) || ANYWHERE, isOneRegion: false }
}

const CLOUD_HOST = /\.(?:googleapis\.com|oraclecloud\.com|azure\.com|microsoft\.com)$/
/** Vertex AI names the location in its paths. */
const LOCATION = /\/locations\/([a-z0-9-]+)(?:\/|$)/

/** The region that a URL of a cloud names; null: none. */
function regionInURL({ upstream = '' }: EndpointPlace): string | null {
  const host = hostOf(upstream)
  if (!AWS_HOST.test(host) && !CLOUD_HOST.test(host)) return null
  const isGoogle = host.endsWith('.googleapis.com')
  const location = isGoogle ? LOCATION.exec(URL.parse(upstream)?.pathname ?? '')?.[1] : undefined
  if (location !== undefined) return location
  const names = host.split('.').map((label) => label.replace(/-aiplatform$/, ''))
  return names.find((name) => regionReach(name) !== null) ?? (host === 'aiplatform.googleapis.com' ? 'global' : null)
}

function hostOf(upstream: string): string {
  return URL.parse(upstream)?.hostname ?? ''
}
