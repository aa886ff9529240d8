import type { Body, Denial } from '../../../call/index.ts'
import { chat } from '../dialects/chat.ts'
import { ModelBody, readModelBody } from '../request.ts'

/** Where the texts of this plane's requests stand: everywhere but in the name of the model, which routes and policies go by. */
export const modelTexts = {
  where: { except: [['model']] },
  rewritten: (body: Body, bytes: Uint8Array): Body | Denial =>
    readModelBody(bytes, body instanceof ModelBody ? body.dialect : chat),
  repeated: () => [],
}
