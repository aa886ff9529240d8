import { Type } from 'typebox'
import { closed, conditions, label, listMap, longCount, oneOf, quantity, text, texts } from './common.ts'

const { Optional } = Type

const selectorSchema = Type.Object(
  {
    agents: Optional(texts('Agent names, or `<namespace>/<name>`; globs with `*`.')),
    users: Optional(texts('Users, or `<issuer>#<user>`; globs with `*`.')),
    groups: Optional(texts('Groups of the user: any in common; globs with `*`.')),
    namespace: Optional(
      label(
        'Namespace of the agents; default its own. Only a policy in `plat-system` may name another, and selects all by default.',
      ),
    ),
  },
  { ...closed, description: 'Whose calls count. Inside a key OR, between keys AND; an absent key matches every call.' },
)

const tokensPerDay = (description: string) => Type.Integer({ format: 'int64', minimum: 1, description })

/** Caps that each subject of a template has, with others for some of them. */
const eachSchema = Type.Object(
  {
    per: oneOf(
      ['user', 'group', 'agent', 'session', 'model'],
      'Who has the caps: each user, group of the user (team), agent, session (the key of a client), or model.',
    ),
    names: Optional(texts('Only these have the caps; globs with `*`. Absent: all, and calls without one together.')),
    perDay: Optional(quantity('Cap of each per day.')),
    perMonth: Optional(quantity('Cap of each per month.')),
    tokensPerDay: Optional(tokensPerDay('Tokens (prompt plus completion) of each per day.')),
    except: Optional(
      Type.Array(
        Type.Object(
          {
            names: texts('Whose caps these are; globs with `*`.', { minItems: 1 }),
            perDay: Optional(quantity('Cap of each of them per day.')),
            perMonth: Optional(quantity('Cap of each of them per month.')),
            tokensPerDay: Optional(tokensPerDay('Tokens of each of them per day.')),
          },
          closed,
        ),
        {
          maxItems: 64,
          description:
            'Other caps for some of them: the first entry that names one applies. A cap that it leaves out is the default above.',
        },
      ),
    ),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: 'has(self.perDay) || has(self.perMonth) || has(self.tokensPerDay)',
        message: 'a cap is required: perDay, perMonth or tokensPerDay',
      },
    ],
  },
)

/** `BudgetPolicy.spec`: caps on the total cost of the selected calls, and on that of each user, group, agent, session or model. */
export const budgetPolicySpecSchema = Type.Object(
  {
    selector: Optional(selectorSchema),
    currency: Optional(
      text('ISO 4217; must equal the gateway’s.', { maxLength: 3, pattern: '^[A-Z]{3}$', default: 'USD' }),
    ),
    perSession: Optional(quantity('Cap of each session.')),
    perDay: Optional(quantity('Cap of all of them together per day.')),
    perMonth: Optional(quantity('Cap of all of them together per month.')),
    tokensPerDay: Optional(tokensPerDay('Tokens (prompt plus completion) of all of them together per day.')),
    each: Optional(
      listMap(eachSchema, ['per'], {
        maxItems: 5,
        description:
          'Caps of each user, group, agent, session or model, counted separately, instead of one policy for each.',
      }),
    ),
    alerts: Optional(
      Type.Array(Type.Integer({ format: 'int32', minimum: 1, maximum: 100 }), {
        maxItems: 16,
        default: [50, 80, 100],
        description: 'Percents of a cap at which an alert is sent, once in each window.',
      }),
    ),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: 'has(self.perSession) || has(self.perDay) || has(self.perMonth) || has(self.tokensPerDay) || has(self.each)',
        message: 'a cap is required: perSession, perDay, perMonth, tokensPerDay or each',
      },
    ],
  },
)

export const budgetPolicyStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
