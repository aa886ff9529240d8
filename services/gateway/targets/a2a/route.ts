import { pathOfTarget } from '@plat/core'
import type { Exchange, RawRoute } from '@plat/http'
import { isDenial, type Snapshots, statusOf } from '../../call/index.ts'
import { CARD_PATH } from './card/card.ts'
import { type Cards, KEYS_PATH } from './card/cards.ts'
import { agentsSlot } from './stage.ts'

/** Cache lifetime of the keys, in seconds. */
const KEYS_MAX_AGE_SECONDS = 300

export interface RouteParts {
  readonly cards: Cards
  readonly snapshots: Snapshots
  /** docs/spec/gateway.md, `a2a.publicCards`. */
  readonly publicCards: boolean
}

/** `/a2a/`: serves requests that need no token; all others are calls. */
export function createAgentRoute(parts: RouteParts, governed: (exchange: Exchange) => void): RawRoute {
  return {
    prefix: '/a2a/',
    handle(exchange) {
      const { method, url = '' } = exchange.request
      if (method !== 'GET') return governed(exchange)
      const path = pathOfTarget(url)
      if (path === KEYS_PATH) return answerKeys(exchange, parts.cards)
      if (parts.publicCards && path.endsWith(CARD_PATH)) return void answerCard(exchange, path, parts)
      governed(exchange)
    },
  }
}

function answerKeys({ response }: Exchange, cards: Cards): void {
  response.setHeader('content-type', 'application/jwk-set+json')
  response.setHeader('cache-control', `public, max-age=${KEYS_MAX_AGE_SECONDS}`)
  response.end(JSON.stringify(cards.keys))
}

async function answerCard({ id, request, response }: Exchange, path: string, parts: RouteParts): Promise<void> {
  const agent = parts.snapshots.current.get(agentsSlot).agent(path.slice(1, -CARD_PATH.length))
  const { host, 'if-none-match': ifNoneMatch, 'a2a-version': named } = request.headers
  const query = new URLSearchParams((request.url ?? '').slice(path.length + 1))
  const version = (typeof named === 'string' ? named : '') || query.get('A2A-Version') || ''
  const answer = agent === null ? null : await parts.cards.answer(agent, { host, ifNoneMatch, version })
  if (answer === null || isDenial(answer)) {
    const refused = answer ?? { code: 'unknown_agent' as const, reason: 'no such agent is exposed' }
    response.statusCode = answer === null ? 404 : statusOf(answer)
    response.setHeader('content-type', 'application/json')
    response.setHeader('cache-control', 'no-store')
    response.end(JSON.stringify({ error: refused.code, message: refused.reason, requestId: id }))
    return
  }
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  response.end(answer.body ?? undefined)
}
