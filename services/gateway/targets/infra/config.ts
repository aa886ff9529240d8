import { defineBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'

const MIB = 1024 * 1024

const budget = Type.Object(
  {
    resourcesPerHour: Type.Optional(Type.Integer({ minimum: 0, description: 'Resources that may change in an hour.' })),
    maxTier: Type.Optional(Type.Integer({ minimum: 0, maximum: 4, description: 'Applies above are denied.' })),
  },
  { default: {}, description: 'For one session.' },
)

/** `infra` (docs/spec/gateway.md): governance of infrastructure plans. */
export const infraBlock = defineBlock({
  path: 'infra',
  feature: 'infra',
  schema: Type.Object({
    enabled: key.flag('Infrastructure plan governance; endpoints are 404 when off.'),
    tiers: key.group(
      {
        sensitiveTypes: key.texts('Instead of the built-in list.'),
        addSensitiveTypes: key.texts('Beside the built-in list.'),
        dataBearingTypes: key.texts('Instead of the built-in list.'),
        addDataBearingTypes: key.texts('Beside the built-in list.'),
        protectedAddresses: key.texts('Instead of the built-in list.'),
        addProtectedAddresses: key.texts('Beside the built-in list.'),
        maxResources: key.whole('Resources of one plan.', 50, 1),
      },
      'Rules for the tier of a plan.',
    ),
    requireApprovalAtTier: key.whole('Tier from which an approval is required; 5 never.', 3, 0, 5),
    maxTier: key.whole('Applies above are denied.', 4, 0, 4),
    denyTypes: key.texts('Globs of types that are always denied.'),
    maxPlanBytes: key.whole('Bytes of one plan.', 16 * MIB, 1, 256 * MIB),
    authorizationTTLSeconds: key.seconds('Life of an authorization.', 3600),
    budgets: key.group(
      { perSession: budget, perAgent: key.map(budget, 'By agent, `*` for the rest.') },
      'Limits on changes.',
    ),
  }),
})

export type InfraConfig = Readonly<Static<typeof infraBlock.schema>>
