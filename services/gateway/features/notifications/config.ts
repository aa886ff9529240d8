import { type ConfigBlock, isUnset, key, type Problem, type Rule, uniqueNames } from '@plat/config'
import Type from 'typebox'

const approver = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Object({
    user: key.needed('Name in the ledger.'),
    groups: key.texts('Groups.'),
    namespaces: key.texts('Namespaces; default all.'),
  }),
])

const notifier = Type.Object({
  name: key.needed('Unique name.'),
  type: Type.Enum(['webhook', 'slack', 'teams', 'matrix'], { description: 'What is told.' }),
  url: key.url('Required for `webhook`.'),
  webhookURLFile: key.file('Incoming-webhook URL of `slack` and `teams`.'),
  hmacSecretFile: key.file('Signs what a `webhook` gets.'),
  signingSecretFile: key.file('Verifies what comes back from chat.'),
  homeserver: key.url('Of `matrix`.'),
  roomId: key.text('Of `matrix`.'),
  accessTokenFile: key.file('Required for `matrix`.'),
  events: key.texts('Default all.'),
  userMap: key.map(approver, 'Chat user id to an approver.'),
  callbackOIDC: key.group(
    {
      issuer: key.url('Issuer of the callback token.'),
      audience: key.text('Its audience.'),
      jwksURL: key.url('Its keys.'),
      discoveryURL: key.url('Where its keys are named.'),
    },
    'Who may call back.',
  ),
})

/** What each type cannot do without. */
const TARGETS: Readonly<Record<string, string>> = { webhook: 'url', matrix: 'accessTokenFile' }

const notifiersHaveTargets: Rule = ({ notifiers }) =>
  (Array.isArray(notifiers) ? notifiers : []).flatMap((one: unknown, index): Problem[] => {
    // What is no object was told already.
    if (typeof one !== 'object' || one === null || !('type' in one)) return []
    const target = TARGETS[String(one.type)]
    if (target === undefined || !isUnset(Reflect.get(one, target))) return []
    return [{ path: `notifiers[${index}].${target}`, message: `is required for ${one.type}`, severity: 'error' }]
  })

/** Approval notifications (document 3). */
export const notificationsBlock = {
  path: '',
  feature: 'notifications',
  built: false,
  schema: Type.Object({
    consoleURL: Type.String({ default: '', format: 'http-url', description: 'Link in notifications.' }),
    notifiers: Type.Array(notifier, { default: [], description: 'Approval notifications.' }),
    notifyOutboxPath: Type.String({
      default: '',
      description: 'Undelivered notifications; memory when empty.',
    }),
  }),
  rules: [uniqueNames('notifiers'), notifiersHaveTargets],
} satisfies ConfigBlock
