// Which of several answers is the newest: they may arrive in another order than they were asked for, and live messages come between them.

export class AnswerOrder {
  constructor() {
    this.turn = 0;
    this.accepted = 0;
    this.messages = new Map(); // the turn of the last message, by subject
  }

  /** A question is asked. Give what this returns to the other methods when its answer is there. */
  ask() {
    return ++this.turn;
  }

  /** A live message came. It is newer than the answers to all questions that were asked before. */
  received(subject = "") {
    this.messages.set(subject, ++this.turn);
  }

  /** Whether a message about the subject has come since the question was asked. */
  isPast(question, subject = "") {
    return (this.messages.get(subject) ?? 0) > question;
  }

  /** Whether the answer is to be shown: no answer to a later question was. */
  accept(question) {
    if (question < this.accepted) return false;
    this.accepted = question;
    return true;
  }

  /** Messages about other subjects are forgotten. */
  keepOnly(subjects) {
    for (const subject of this.messages.keys()) if (!subjects.has(subject)) this.messages.delete(subject);
  }
}
