import { defineBlock, isUnset, key, type Problem, type RuleOf, type Unfinished, uniqueNames } from '@plat/config'
import { closest } from '@plat/core'
import Type, { type Static } from 'typebox'
import { NOTICE_TYPES } from './notice.ts'

const approver = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Object({
    user: key.needed('Name at the identity provider of the admin API; in the ledger `user:<name>`.'),
    groups: key.texts('Groups, for `approverGroups`.'),
    namespaces: key.texts('Namespaces; default all.'),
  }),
])

const notifier = Type.Object({
  name: key.needed('Unique name.'),
  type: Type.Enum(['webhook', 'slack', 'teams', 'matrix'], { description: 'Type of the receiver.' }),
  url: key.url('Required for `webhook`.'),
  webhookURLFile: key.file('Holds the incoming-webhook URL; required for `slack` and `teams`.'),
  hmacSecretFile: key.file('Signs notifications to a `webhook` (Standard Webhooks).'),
  signingSecretFile: key.file(
    'Verifies what comes back: the signing secret of the Slack app, the token of the Teams outgoing webhook, of `webhook` a Standard Webhooks secret.',
  ),
  jurisdiction: key.jurisdiction('Where the receiver runs; checked against the SovereigntyPolicy.'),
  homeserver: key.url('Required for `matrix`.'),
  roomId: key.text('Required for `matrix`.'),
  accessTokenFile: key.file('Required for `matrix`.'),
  events: key.texts('Default all.'),
  tenants: key.texts(
    'Tenants of `teams`, workspaces of `slack` (`T…`) from which callbacks are accepted; default any that the secret or token vouches for.',
  ),
  channels: key.texts('Channels of `teams` or `slack` from which callbacks are accepted; default any.'),
  userMap: key.map(approver, 'Chat user id to an approver.'),
  callbackOIDC: key.group(
    {
      issuer: key.url('Issuer of the callback token.'),
      audience: key.text('Its audience.'),
      jwksURL: key.url('Its keys.'),
      discoveryURL: key.url('Its discovery document.'),
    },
    'Authentication of callbacks by tokens.',
  ),
})

/** One entry of `notifiers`. */
export type NotifierConfig = Readonly<Static<typeof notifier>>

const schema = Type.Object({
  consoleURL: Type.String({
    default: '',
    format: 'http-url',
    description:
      'Address of the console for browsers, such as `https://plat.example/console`; notifications link to `<consoleURL>/approvals/<id>`.',
  }),
  notifiers: Type.Array(notifier, {
    default: [],
    description: 'Receivers of notifications about approvals and other events.',
  }),
  notifyOutboxPath: Type.String({
    default: '',
    description: 'Undelivered notifications; memory when empty.',
  }),
})

/** Required keys of each type. */
const TARGETS: Readonly<Record<NotifierConfig['type'], readonly (keyof NotifierConfig)[]>> = {
  webhook: ['url'],
  slack: ['webhookURLFile'],
  teams: ['webhookURLFile'],
  matrix: ['homeserver', 'roomId', 'accessTokenFile'],
}

type Entry = Unfinished<NotifierConfig>

/** Applies a rule to each entry; skips entries that are not objects, which the schema reports. */
function eachNotifier(
  faults: (notifier: Entry) => readonly (readonly [key: string, message: string])[],
): RuleOf<typeof schema> {
  return ({ notifiers = [] }) =>
    notifiers.flatMap((one, index): Problem[] => {
      const problems = one === undefined ? [] : faults(one)
      return problems.map(([key, message]) => ({ path: `notifiers[${index}].${key}`, message, severity: 'error' }))
    })
}

const notifiersHaveTargets = eachNotifier((one) =>
  (one.type === undefined ? [] : TARGETS[one.type]).flatMap((key) =>
    isUnset(one[key]) ? [[key, `is required for ${one.type}`] as const] : [],
  ),
)

/** Callbacks need authentication and a mapping of users. */
const callbacksHavePeople = eachNotifier((one) => {
  const { type, signingSecretFile, userMap, callbackOIDC: oidc = {} } = one
  const hasOidc = Object.values(oidc).some((value) => !isUnset(value))
  const faults: (readonly [string, string])[] = []
  if (hasOidc && isUnset(oidc.issuer)) faults.push(['callbackOIDC.issuer', 'is required with callbackOIDC'])
  if (hasOidc && isUnset(oidc.audience)) faults.push(['callbackOIDC.audience', 'is required with callbackOIDC'])
  if (hasOidc && type === 'slack') faults.push(['callbackOIDC', 'slack signs its callbacks: set signingSecretFile'])
  if (type === 'matrix' && !isUnset(signingSecretFile)) {
    faults.push(['signingSecretFile', 'nothing comes back from matrix: set callbackOIDC, or none'])
  }
  if (!isUnset(userMap) && !hasOidc && isUnset(signingSecretFile)) {
    faults.push(['userMap', 'needs signingSecretFile or callbackOIDC: otherwise no callback is accepted'])
  }
  for (const name of ['tenants', 'channels'] as const) {
    const isChat = type === 'slack' || type === 'teams'
    if (!isUnset(one[name]) && !isChat) faults.push([name, `only slack and teams have ${name}`])
  }
  if (isUnset(userMap) && (!isUnset(signingSecretFile) || (hasOidc && type === 'teams'))) {
    faults.push(['userMap', 'is required: it says who may decide'])
  }
  return faults
})

/** An unknown event name would never match. */
const eventsExist = eachNotifier(({ events = [] }) =>
  events.flatMap((event, at) => {
    if (event === undefined || KNOWN.has(event)) return []
    const near = closest(event, NOTICE_TYPES)
    const hint = near === null ? `one of ${NOTICE_TYPES.join(', ')}` : `did you mean ${near}?`
    return [[`events[${at}]`, `there is no event ${JSON.stringify(event)}: ${hint}`] as const]
  }),
)

const KNOWN: ReadonlySet<string> = new Set(NOTICE_TYPES)

/** Approval notifications (docs/spec/gateway.md). */
export const notificationsBlock = defineBlock({
  path: '',
  feature: 'notifications',
  schema,
  rules: [uniqueNames('notifiers'), notifiersHaveTargets, callbacksHavePeople, eventsExist],
})
