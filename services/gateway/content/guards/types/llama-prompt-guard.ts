import { at, scoreOf } from './json.ts'
import { type GuardType, modelOf, posted } from './type.ts'

/** Llama Prompt Guard, or any other sequence classifier, behind vLLM's or SGLang's `POST /classify`: the probability of one class. */
export const llamaPromptGuard: GuardType = {
  request: (input) => posted(input, { ...modelOf(input.config), input: input.text }),
  score: (answer, { positiveIndex }) => scoreOf(at(answer, 'data', 0, 'probs', positiveIndex)),
}
