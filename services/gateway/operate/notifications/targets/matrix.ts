import { shownArguments } from './arguments.ts'
import { linkOf, secretIn, type Target, type TargetParts } from './target.ts'

/** Type `matrix`: a message to a room. The transaction's name is the notice's, so that the server drops what it has. */
export function matrixTarget({ config, field, consoleURL }: TargetParts): Target {
  const base = config.homeserver.replace(/\/$/, '')
  const room = `${base}/_matrix/client/v3/rooms/${encodeURIComponent(config.roomId)}/send/m.room.message`
  return {
    async message(notice) {
      const token = await secretIn(`${field}.accessTokenFile`, config.accessTokenFile)
      const link = linkOf(notice, consoleURL)
      const shown = shownArguments('matrix', notice)
      const lines = [
        notice.title,
        ...notice.facts.map(([name, value]) => `${name}: ${value}`),
        ...(shown === null || shown.text === null ? [] : [`arguments: ${shown.text}`]),
        ...(shown === null || shown.note === null ? [] : [shown.note]),
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
