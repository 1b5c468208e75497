package words;

import static org.junit.Assert.assertEquals;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.Test;

public class WordsTest {
    @Test
    public void countsEachWord() {
        assertEquals(Map.of("a", 2, "b", 1), Words.count("a b, a"));
    }

    @Test
    public void findsNoneInNothing() {
        assertEquals(Map.of(), Words.count(" "));
    }

    @Test
    public void readsWhatCameBySocket() throws Exception {
        Path file = Files.createTempFile("words", ".txt");
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
                Socket accepted = server.accept()) {
            client.getOutputStream().write("one two one".getBytes());
            client.shutdownOutput();
            Files.write(file, accepted.getInputStream().readAllBytes());
        }
        assertEquals(Map.of("one", 2, "two", 1), Words.count(Files.readString(file)));
        Files.delete(file);
    }
}
