import { isWhole, shownArguments } from './arguments.ts'
import { addressIn, linkOf, type Target, type TargetParts } from './target.ts'

/** Type `teams`: an Adaptive Card to a webhook of Teams Workflows. With callbacks it says what to answer. */
export function teamsTarget({ config, field, consoleURL }: TargetParts): Target {
  return {
    async message(notice) {
      const url = await addressIn(`${field}.webhookURLFile`, config.webhookURLFile)
      const link = linkOf(notice, consoleURL)
      const isAsked = config.signingSecretFile !== '' && notice.type === 'approval.created'
      const shown = shownArguments('teams', notice)
      const word = isWhole('teams', notice.arguments) ? 'approve' : 'deny'
      const card = {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.4',
        body: [
          text(notice.title, { weight: 'Bolder', size: 'Medium' }),
          ...notice.facts.map(([name, value]) => text(`${name}: ${value}`)),
          ...(shown === null || shown.text === null ? [] : [text(`arguments: ${shown.text}`)]),
          ...(shown === null || shown.note === null ? [] : [text(shown.note)]),
          ...(isAsked ? [text(`To decide, mention the webhook with: ${word} ${notice.approval}`)] : []),
        ],
        actions: link === null ? [] : [{ type: 'Action.OpenUrl', title: 'Open', url: link }],
      }
      const attachment = { contentType: 'application/vnd.microsoft.card.adaptive', content: card }
      return { url, body: JSON.stringify({ type: 'message', attachments: [attachment] }) }
    },
  }
}

/** Runs of a rich text are shown as they are; other texts of a card would be read as Markdown. */
function text(words: string, style: object = {}) {
  return { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: words, ...style }] }
}
