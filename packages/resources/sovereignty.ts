/** Residency rules: the format of `sovereigntyPolicyFile`, and its requirements for upstreams. */
import { type Static, Type } from 'typebox'
import { mapOf } from './check.ts'
import { type Decoded, decodeRendered } from './decode.ts'
import { jurisdiction } from './kinds/common.ts'
import { sovereigntyFields } from './kinds/sovereigntypolicy.ts'
import { ANYWHERE } from './regions/table.ts'

/**
 * Format `sovereigntyPolicyFile`: the spec of a SovereigntyPolicy, and `jurisdiction` of each TrustTier by its name. `version` and
 * `tierJurisdictions` may be left out.
 */
const sovereigntyFileSchema = Type.Object(
  {
    version: Type.Optional(Type.Literal(1)),
    ...sovereigntyFields(),
    tierJurisdictions: Type.Optional(mapOf(jurisdiction())),
  },
  { additionalProperties: false },
)

/** Content of `sovereigntyPolicyFile` and of a SovereigntyPolicy. */
export type Sovereignty = Static<typeof sovereigntyFileSchema>

export function decodeSovereignty(bytes: Uint8Array): Decoded<Sovereignty> {
  return decodeRendered(sovereigntyFileSchema, bytes, () => [])
}

type PlaceRules = Pick<Sovereignty, 'allowedJurisdictions' | 'deniedJurisdictions' | 'requireJurisdiction'>
type DataClass = keyof NonNullable<Sovereignty['dataClassRules']>

/** In ascending order: a class without rules inherits those of the next lower one. */
export const DATA_CLASSES: readonly DataClass[] = ['public', 'internal', 'confidential', 'restricted']

/** Members of the European Union, which is itself a jurisdiction with the code EU. */
const EU = new Set('at be bg hr cy cz dk ee fi fr de gr hu ie it lv lt lu mt nl pl pt ro sk si es se'.split(' '))

/** Stated location of an upstream, and its data class. */
export interface UpstreamPlacement {
  /** Null or empty: not stated. */
  readonly jurisdiction: string | null | undefined
  readonly dataClass: DataClass
}

/**
 * Returns why data must not go to an upstream, as the end of a sentence about it; null when it complies. An upstream without a jurisdiction complies
 * unless one is required. A code covers all parts of its place (US covers US-CA, EU its members); a denied part of a wider place denies the wider
 * one, because the actual part is unknown.
 */
export function residencyFault(rules: Sovereignty, { jurisdiction, dataClass }: UpstreamPlacement): string | null {
  const at = jurisdiction || null
  const all = placeFault(rules, at)
  if (all !== null) return all
  const ofClass = rulesOfClass(rules, dataClass)
  const fault = ofClass === null ? null : placeFault(ofClass, at)
  return fault === null ? null : `${fault} for ${dataClass} data`
}

function rulesOfClass({ dataClassRules }: Sovereignty, dataClass: DataClass): PlaceRules | null {
  for (let at = DATA_CLASSES.indexOf(dataClass); at >= 0; at--) {
    const rules = dataClassRules?.[DATA_CLASSES[at] ?? 'public']
    if (rules !== undefined) return rules
  }
  return null
}

function placeFault(rules: PlaceRules, at: string | null): string | null {
  if (at === null) return rules.requireJurisdiction === true ? 'does not say where it runs, which is required' : null
  const where = at === ANYWHERE ? 'may run anywhere' : `runs in ${at}`
  if (at === ANYWHERE && rules.requireJurisdiction === true) return `${where}, and a jurisdiction is required`
  const denied = rules.deniedJurisdictions ?? []
  if (denied.some((one) => covers(one, at) || covers(at, one))) return `${where}, which is denied`
  const allowed = rules.allowedJurisdictions ?? []
  if (allowed.length === 0 || allowed.some((one) => covers(one, at))) return null
  return `${where}, which is not allowed`
}

/** Returns whether `part` lies within `whole`, ignoring case. */
export function covers(whole: string, part: string): boolean {
  if (whole === ANYWHERE) return true
  const one = whole.toLowerCase()
  const other = part.toLowerCase()
  if (other === one || other.startsWith(`${one}-`)) return true
  return one === 'eu' && EU.has(other.split('-')[0] ?? '')
}
