import { argumentsView, isWhole } from './arguments.ts'
import { addressIn, linkOf, type Target, type TargetParts } from './target.ts'

/** Type `teams`: an Adaptive Card to a webhook of Teams Workflows. With callbacks it shows the command to reply with. */
export function teamsTarget({ config, field, consoleURL }: TargetParts): Target {
  return {
    async message(notice) {
      const url = await addressIn(`${field}.webhookURLFile`, config.webhookURLFile)
      const link = linkOf(notice, consoleURL)
      const isAsked = config.signingSecretFile !== '' && notice.type === 'approval.created'
      const view = argumentsView('teams', notice)
      const word = isWhole('teams', notice.arguments) ? 'approve' : 'deny'
      const card = {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.4',
        body: [
          text(notice.title, { weight: 'Bolder', size: 'Medium' }),
          ...notice.facts.map(([name, value]) => text(`${name}: ${value}`)),
          ...(view === null || view.text === null ? [] : [text(`arguments: ${view.text}`)]),
          ...(view === null || view.note === null ? [] : [text(view.note)]),
          ...(isAsked ? [text(`To decide, mention the webhook with: ${word} ${notice.approval}`)] : []),
        ],
        actions: link === null ? [] : [{ type: 'Action.OpenUrl', title: 'Open', url: link }],
      }
      const attachment = { contentType: 'application/vnd.microsoft.card.adaptive', content: card }
      return { url, body: JSON.stringify({ type: 'message', attachments: [attachment] }) }
    },
  }
}

/** Rich-text runs are displayed literally; other texts of a card would be rendered as Markdown. */
function text(words: string, style: object = {}) {
  return { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: words, ...style }] }
}
