import type { Notice } from '../notice.ts'
import { argumentsView, isWhole, SLACK_BLOCK_CHARS } from './arguments.ts'
import { addressIn, linkOf, type Target, type TargetParts } from './target.ts'

/** Action ids of the buttons in callbacks. */
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
        { type: 'header', text: plain(header(notice.title)) },
        ...sectionsOf(notice),
        ...argumentsOf(notice),
        ...actionsOf(notice, { link: linkOf(notice, consoleURL), hasButtons }),
        { type: 'context', elements: [plain(notice.id)] },
      ]
      return { url, body: JSON.stringify({ text: escaped(notice.title), blocks }) }
    },
  }
}

/** Plain text: Slack interprets no mention, link or formatting in it. */
function plain(text: string) {
  return { type: 'plain_text', text, emoji: false } as const
}

function header(title: string): string {
  return title.length > HEADER_MAX ? `${title.slice(0, HEADER_MAX - 1).toWellFormed()}…` : title
}

function sectionsOf({ facts }: Notice) {
  const fields = facts.map(([name, value]) => plain(`${name}: ${value}`))
  return inParts(fields, FIELDS_MAX).map((part) => ({ type: 'section', fields: part }))
}

/** Splits the whole text into as many blocks as it needs. */
function argumentsOf(notice: Notice) {
  const view = argumentsView('slack', notice)
  if (view === null) return []
  const text = view.text === null ? [] : inParts([...`arguments: ${view.text}`], SLACK_BLOCK_CHARS / 2)
  const note = view.note === null ? [] : [view.note]
  return [...text.map((characters) => characters.join('')), ...note].map((words) => ({
    type: 'section',
    text: plain(words),
  }))
}

function inParts<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size))
}

function actionsOf(notice: Notice, { link, hasButtons }: { link: string | null; hasButtons: boolean }) {
  const { approval } = notice
  const button = (text: string, more: object) => ({ type: 'button', text: plain(text), ...more })
  const elements = [
    ...(hasButtons && approval !== null
      ? [
          ...(isWhole('slack', notice.arguments)
            ? [button('Approve', { action_id: APPROVE_ACTION, value: approval, style: 'primary' })]
            : []),
          button('Deny', { action_id: DENY_ACTION, value: approval, style: 'danger' }),
        ]
      : []),
    ...(link === null ? [] : [button('Open', { action_id: 'plat_open', url: link })]),
  ]
  return elements.length === 0 ? [] : [{ type: 'actions', elements }]
}

/** Escapes the three control characters of Slack's `text`. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
