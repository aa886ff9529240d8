import { defineBlock, key, memberPath, type RuleOf } from '@plat/config'
import { endpointFault } from '@plat/resources/regions/endpoint'
import Type from 'typebox'

const schema = Type.Object({
  sovereigntyPolicyFile: Type.String({
    default: '',
    file: 'fails closed',
    description:
      'SovereigntyPolicy spec; when set every upstream must comply and all egress uses a residency-checking dialer.',
  }),
  endpointJurisdictions: key.map(
    key.jurisdiction('Where the endpoint runs; checked against the SovereigntyPolicy.'),
    'Origin of a key set, discovery document or token endpoint to its jurisdiction; default by the cloud region in its URL.',
  ),
})

const endpointsArePlaced: RuleOf<typeof schema> = ({ endpointJurisdictions = {} }) =>
  Object.entries(endpointJurisdictions).flatMap(([origin, jurisdiction = '']) => {
    const message = endpointFault(origin, jurisdiction)
    return message === null
      ? []
      : [{ path: memberPath('endpointJurisdictions', origin), message, severity: 'error' as const }]
  })

/** Data residency (docs/spec/gateway.md, "Policies"). */
export const residencyBlock = defineBlock({
  path: '',
  feature: 'residency',
  schema,
  rules: [endpointsArePlaced],
})
