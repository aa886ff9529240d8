import { argumentsView } from './arguments.ts'
import { linkOf, secretIn, type Target, type TargetParts } from './target.ts'

/** Type `matrix`: a message to a room. The transaction id is the notice's, so that the server drops duplicates. */
export function matrixTarget({ config, field, consoleURL }: TargetParts): Target {
  const base = config.homeserver.replace(/\/$/, '')
  const room = `${base}/_matrix/client/v3/rooms/${encodeURIComponent(config.roomId)}/send/m.room.message`
  return {
    async message(notice) {
      const token = await secretIn(`${field}.accessTokenFile`, config.accessTokenFile)
      const link = linkOf(notice, consoleURL)
      const view = argumentsView('matrix', notice)
      const lines = [
        notice.title,
        ...notice.facts.map(([name, value]) => `${name}: ${value}`),
        ...(view === null || view.text === null ? [] : [`arguments: ${view.text}`]),
        ...(view === null || view.note === null ? [] : [view.note]),
        ...(link ? [link] : []),
      ]
      return {
        url: `${room}/${encodeURIComponent(notice.id)}`,
        method: 'PUT',
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ msgtype: 'm.notice', body: lines.join('\n') }),
      }
    },
  }
}
