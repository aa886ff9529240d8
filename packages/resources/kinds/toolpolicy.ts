import { Type } from 'typebox'
import { mapOf } from '../check.ts'
import { closed, conditions, count, listMap, longCount, oneOf, text, texts } from './common.ts'
import { toolPinsSchema } from './mcpserver.ts'

const { Optional } = Type

const globs = (what: string) => texts(`${what}; globs with \`*\`.`)

/** Inside a key OR, between keys AND; an absent key matches everything. */
const matchSchema = Type.Object(
  {
    servers: Optional(globs('Server names as the agent calls them')),
    tools: Optional(globs('Tool names')),
    skills: Optional(globs('Skill ids of agents')),
    methods: Optional(globs('Protocol methods')),
    agents: Optional(globs('Agent names, or `<namespace>/<name>`')),
    tiers: Optional(globs('Tiers of the session')),
    groups: Optional(globs('Groups of the user: any in common')),
    users: Optional(globs('Users, or `<issuer>#<user>`')),
    dataClasses: Optional(globs('Data classes of the server')),
    taints: Optional(globs('Taints of the session: any in common')),
    sinks: Optional(globs('Sinks of the tool: any in common')),
  },
  { ...closed, description: 'Calls that the rule is about; absent: all.' },
)

const ruleSchema = Type.Object(
  {
    name: text('Names the rule in denials and in the ledger.', { minLength: 1, maxLength: 128 }),
    match: Optional(matchSchema),
    when: Optional(text('CEL over args, identity, target, taints, method, now.', { maxLength: 4096 })),
    action: oneOf(['allow', 'deny', 'require_approval'], 'Deny wins over approval, approval over allow.'),
    quorum: Optional(
      Type.Object(
        {
          minApprovers: Optional(count('Approvals that are needed.', { maximum: 10, default: 1 })),
          approverGroups: Optional(texts('Groups that may approve.')),
          userConfirmation: Optional(oneOf(['ciba'], 'The delegating user confirms.')),
        },
        { ...closed, description: 'Approvers that require_approval needs.' },
      ),
    ),
    rateLimit: Optional(
      Type.Object(
        {
          count: count('Calls.', { minimum: 1 }),
          seconds: count('Window.', { minimum: 1 }),
          per: oneOf(
            ['session', 'agent', 'user', 'group', 'model', 'namespace'],
            'Whose calls are counted: each has the limit; a user of several groups counts in each of them.',
          ),
          except: Optional(
            Type.Array(
              Type.Object(
                {
                  names: texts('Whose limit this is; globs with `*`.', { minItems: 1 }),
                  count: count('Calls.', { minimum: 1 }),
                },
                closed,
              ),
              { maxItems: 64, description: 'Other limits for some of them: the first entry that names one applies.' },
            ),
          ),
        },
        { ...closed, description: 'Most calls that match the rule.' },
      ),
    ),
    reason: Optional(text('Sentence for the caller.')),
  },
  closed,
)

export const toolPolicySpecSchema = Type.Object(
  {
    mode: Optional(oneOf(['enforce', 'dryRun'], 'dryRun only reports.', { default: 'enforce' })),
    defaultAction: Optional(oneOf(['deny'], 'Where no rule matches.', { default: 'deny' })),
    rules: Optional(listMap(ruleSchema, ['name'], { maxItems: 1024, description: 'Rules, in any order.' })),
    cedar: Optional(text('Cedar policies.', { maxLength: 262_144 })),
    toolPins: Optional(mapOf(toolPinsSchema, { maxProperties: 256, description: 'By server name.' })),
  },
  closed,
)

export const toolPolicyStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
