import { Type } from 'typebox'
import { closed, conditions, label, longCount, quantity, text, texts } from './common.ts'

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

/** `BudgetPolicy.spec`: a cap on the total cost of the selected calls. */
export const budgetPolicySpecSchema = Type.Object(
  {
    selector: Optional(selectorSchema),
    currency: Optional(
      text('ISO 4217; must equal the gateway’s.', { maxLength: 3, pattern: '^[A-Z]{3}$', default: 'USD' }),
    ),
    perSession: Optional(quantity('Cap of each session.')),
    perDay: Optional(quantity('Cap of all of them together per day.')),
    perMonth: Optional(quantity('Cap of all of them together per month.')),
    tokensPerDay: Optional(
      Type.Integer({
        format: 'int64',
        minimum: 1,
        description: 'Tokens (prompt plus completion) of all of them together per day.',
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
        rule: 'has(self.perSession) || has(self.perDay) || has(self.perMonth) || has(self.tokensPerDay)',
        message: 'a cap is required: perSession, perDay, perMonth or tokensPerDay',
      },
    ],
  },
)

/** `BudgetPolicy.status`. */
export const budgetPolicyStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
