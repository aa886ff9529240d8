import type { Notice } from '../notice.ts'
import { addressIn, linkOf, type Target, type TargetParts } from './target.ts'

/** What the buttons are called when they come back. */
export const APPROVE_ACTION = 'plat_approve'
export const DENY_ACTION = 'plat_deny'

/** Limits of Slack's blocks, in characters and fields. */
const HEADER_MAX = 150
const FIELDS_MAX = 10

/** Type `slack`: an incoming webhook; with `signingSecretFile` the message has buttons that decide. */
export function slackTarget({ config, field, consoleURL }: TargetParts): Target {
  return {
    async message(notice) {
      const url = await addressIn(`${field}.webhookURLFile`, config.webhookURLFile)
      const hasButtons = config.signingSecretFile !== '' && notice.type === 'approval.created'
      const blocks = [
        { type: 'header', text: plain(notice.title.slice(0, HEADER_MAX)) },
        ...(notice.facts.length === 0 ? [] : [{ type: 'section', fields: fieldsOf(notice) }]),
        ...actionsOf(notice, { link: linkOf(notice, consoleURL), hasButtons }),
        { type: 'context', elements: [plain(notice.id)] },
      ]
      return { url, body: JSON.stringify({ text: escaped(notice.title), blocks }) }
    },
  }
}

/** Plain text is shown as it is: no mention, no link, no formatting. */
function plain(text: string) {
  return { type: 'plain_text', text, emoji: false } as const
}

function fieldsOf({ facts }: Notice) {
  return facts.slice(0, FIELDS_MAX).map(([name, value]) => plain(`${name}: ${value}`))
}

function actionsOf({ approval }: Notice, { link, hasButtons }: { link: string | null; hasButtons: boolean }) {
  const button = (text: string, more: object) => ({ type: 'button', text: plain(text), ...more })
  const elements = [
    ...(hasButtons && approval !== null
      ? [
          button('Approve', { action_id: APPROVE_ACTION, value: approval, style: 'primary' }),
          button('Deny', { action_id: DENY_ACTION, value: approval, style: 'danger' }),
        ]
      : []),
    ...(link === null ? [] : [button('Open', { action_id: 'plat_open', url: link })]),
  ]
  return elements.length === 0 ? [] : [{ type: 'actions', elements }]
}

/** In `text` three characters are Slack's own. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
