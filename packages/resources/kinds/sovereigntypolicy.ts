import { Type } from 'typebox'
import { closed, conditions, flag, jurisdictionCodes, longCount, text } from './common.ts'

const { Optional } = Type

/** Allowed and denied places, for all data or for one class. */
const placeFields = () => ({
  allowedJurisdictions: Optional(
    jurisdictionCodes('Where data may be: an upstream elsewhere is refused. Empty: anywhere.'),
  ),
  deniedJurisdictions: Optional(jurisdictionCodes('Where data must never be, whatever is allowed.')),
  requireJurisdiction: Optional(flag('Refuses an upstream that does not say where it runs.')),
})

const placeRules = (description: string) => Optional(Type.Object(placeFields(), { ...closed, description }))

/** In addition to the general rules: a class without an entry inherits that of the next lower class. */
const dataClassRulesSchema = Type.Object(
  {
    public: placeRules('For upstreams that handle public data.'),
    internal: placeRules('For internal data.'),
    confidential: placeRules('For confidential data.'),
    restricted: placeRules('For restricted data.'),
  },
  { ...closed, description: 'Further rules by the data class of an upstream; both must hold.' },
)

/** Fields of a SovereigntyPolicy, also used by `sovereigntyPolicyFile`. */
export const sovereigntyFields = () => ({
  ...placeFields(),
  dataClassRules: Optional(dataClassRulesSchema),
  allowedCIDRs: Optional(
    Type.Array(text('Address range such as 10.0.0.0/8.', { maxLength: 64, pattern: '^[0-9A-Fa-f:.]+/[0-9]{1,3}$' }), {
      maxItems: 256,
      description: 'Addresses that connections may lead to. Empty: any.',
    }),
  ),
  auditRetentionDays: Optional(longCount('How long audit records are kept, for the check against the legal minimum.')),
})

/** `SovereigntyPolicy.spec` (cluster scope). */
export const sovereigntyPolicySpecSchema = Type.Object(sovereigntyFields(), closed)

export const sovereigntyPolicyStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
