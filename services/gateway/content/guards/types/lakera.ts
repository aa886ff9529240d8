import { at } from './json.ts'
import { type GuardType, posted } from './type.ts'

/**
 * Lakera Guard (`POST /v2/guard`): its project, selected by `model`, decides; the response is yes or no. With a `category` only
 * its detectors count, such as `prompt_attack`, or all of `moderated_content/…`.
 */
export const lakera: GuardType = {
  request(input) {
    const { model, category } = input.config
    return posted(input, {
      messages: [{ role: 'user', content: input.text }],
      ...(model !== '' && { project_id: model }),
      ...(category !== '' && { breakdown: true }),
    })
  },
  score(answer, { category }) {
    const flagged = at(answer, 'flagged')
    if (typeof flagged !== 'boolean') return null
    if (category === '') return flagged ? 1 : 0
    const breakdown = at(answer, 'breakdown')
    if (!Array.isArray(breakdown)) return null
    return breakdown.some((one) => at(one, 'detected') === true && isOf(at(one, 'detector_type'), category)) ? 1 : 0
  },
}

function isOf(detector: unknown, category: string): boolean {
  return typeof detector === 'string' && (detector === category || detector.startsWith(`${category}/`))
}
