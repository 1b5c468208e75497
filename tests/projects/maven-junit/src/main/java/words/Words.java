package words;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Counts words. */
public final class Words {
    private Words() {}

    /** How often each word is in a text. */
    public static Map<String, Integer> count(String text) {
        Map<String, Integer> counts = new TreeMap<>();
        Arrays.stream(text.split("\\W+")).filter(word -> !word.isEmpty()).forEach(word -> counts.merge(word, 1, Integer::sum));
        return counts;
    }
}
