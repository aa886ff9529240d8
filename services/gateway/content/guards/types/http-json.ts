import { scoreOf, step } from './json.ts'
import { type GuardType, modelOf, posted } from './type.ts'

/**
 * A custom classifier: it gets `{text, target, model?}` and responds with JSON that has the score at `scorePath`, names and indices
 * separated by dots. If the score is an object, `category` selects a member.
 */
export const httpJson: GuardType = {
  request: (input) => posted(input, { text: input.text, target: input.target, ...modelOf(input.config) }),
  score(answer, { scorePath, category }) {
    const found = scorePath.split('.').reduce(step, answer)
    return scoreOf(category === '' ? found : step(found, category))
  },
}
