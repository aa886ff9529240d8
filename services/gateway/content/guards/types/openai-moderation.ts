import { at, scoreOf } from './json.ts'
import { type GuardType, modelOf, posted } from './type.ts'

/** OpenAI's moderation endpoint (`POST /v1/moderations`): a score per category, of which `category` or the highest counts. */
export const openaiModeration: GuardType = {
  request: (input) => posted(input, { ...modelOf(input.config), input: input.text }),
  score(answer, { category }) {
    const scores = at(answer, 'results', 0, 'category_scores')
    if (category !== '') return scoreOf(at(scores, category))
    const all = typeof scores === 'object' && scores !== null ? Object.values(scores).map(scoreOf) : []
    const known = all.filter((score) => score !== null)
    return known.length === 0 ? null : Math.max(...known)
  },
}
