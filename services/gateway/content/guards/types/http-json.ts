import { scoreOf, step } from './json.ts'
import { type GuardType, modelOf, posted } from './type.ts'

/**
 * A classifier of one's own: it gets `{text, target, model?}` and answers JSON with the score at `scorePath`, names and places in lists
 * with dots between them. Where there are several by name, `category` names the one that counts.
 */
export const httpJson: GuardType = {
  ask: (question) => posted(question, { text: question.text, target: question.target, ...modelOf(question.config) }),
  score(answer, { scorePath, category }) {
    const found = scorePath.split('.').reduce(step, answer)
    return scoreOf(category === '' ? found : step(found, category))
  },
}
